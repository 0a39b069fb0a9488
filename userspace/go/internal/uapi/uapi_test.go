// SPDX-License-Identifier: GPL-2.0-only

package uapi

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const include = "../../../../kmod/include/uapi"

// These are the structures and constants as the compiler sees them.
func scope(t *testing.T) *types.Scope {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "uapi.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	config := types.Config{Importer: importer.ForCompiler(files, "source", nil)}
	pkg, err := config.Check("uapi", files, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pkg.Scope()
}

// inC returns the name that the header has for one of Go: max_tokens for MaxTokens.
func inC(name string) string {
	capital := regexp.MustCompile(`(.)([A-Z])`)
	return strings.ToLower(capital.ReplaceAllString(name, "${1}_$2"))
}

// told makes assertions in C about the header, from what Go says.
type told []string

func (d *told) add(expression string, value string) {
	*d = append(*d, fmt.Sprintf(`_Static_assert((unsigned long long)(%s) == %sull, "%[1]s is not %[2]s");`,
		expression, value))
}

// describe tells of all that the file has, as the compiler of an architecture sees it.
func describe(scope *types.Scope, sizes types.Sizes) *told {
	d := &told{}
	for _, name := range scope.Names() {
		switch object := scope.Lookup(name).(type) {
		case *types.Const:
			d.add("TIMEWHEEL_"+strings.ToUpper(inC(name)),
				constant.ToInt(object.Val()).ExactString())
		case *types.TypeName:
			d.structure("struct timewheel_"+inC(name),
				object.Type().Underlying().(*types.Struct), sizes)
		}
	}
	return d
}

func (d *told) structure(name string, s *types.Struct, sizes types.Sizes) {
	d.add("sizeof("+name+")", fmt.Sprint(sizes.Sizeof(s)))
	var fields []*types.Var
	for i := 0; i < s.NumFields(); i++ {
		fields = append(fields, s.Field(i))
	}
	for i, offset := range sizes.Offsetsof(fields) {
		field := inC(fields[i].Name())
		value := "((" + name + " *)0)->" + field
		d.add("offsetof("+name+", "+field+")", fmt.Sprint(offset))
		d.add("sizeof("+value+")", fmt.Sprint(sizes.Sizeof(fields[i].Type())))
		signed := "0"
		if basic, ok := fields[i].Type().(*types.Basic); ok &&
			basic.Info()&types.IsUnsigned == 0 {
			signed = "1"
		}
		d.add("_Generic("+value+", int: 1, long long: 1, default: 0)", signed)
	}
}

// compile lets the compiler check the assertions. Nothing is run, as a kernel may be unable to
// run programs of 32 bits.
func compile(t *testing.T, d *told, flag string) (said string, err error) {
	source := filepath.Join(t.TempDir(), "layout.c")
	text := "#include <stddef.h>\n#include <linux/timewheel.h>\n" + strings.Join(*d, "\n") + "\n"
	if err := os.WriteFile(source, []byte(text), 0666); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("cc", flag, "-I"+include, "-fsyntax-only", source).CombinedOutput()
	return string(out), err
}

// Each constant has the header's value, and each structure the header's size, and its fields
// the places, sizes and signs: on machines of 64 and of 32 bits. The test also sees a wrong
// assertion.
func TestIsAsTheHeaderHasIt(t *testing.T) {
	scope := scope(t)
	for architecture, flag := range map[string]string{"amd64": "-m64", "386": "-m32"} {
		d := describe(scope, types.SizesFor("gc", architecture))
		if len(*d) < 200 {
			t.Fatalf("only %d assertions", len(*d))
		}
		if said, err := compile(t, d, flag); err != nil {
			t.Errorf("%s: %s", architecture, said)
		}
		d.add("sizeof(struct timewheel_event)", "1")
		if said, err := compile(t, d, flag); err == nil ||
			!strings.Contains(said, "sizeof(struct timewheel_event) is not 1") {
			t.Errorf("%s: a wrong size is not seen: %s", architecture, said)
		}
	}
}

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

// scope has the structures and constants as the compiler sees them.
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
	return strings.ToLower(regexp.MustCompile(`(.)([A-Z])`).ReplaceAllString(name, "${1}_$2"))
}

func assertion(expression string, value any) string {
	return fmt.Sprintf("_Static_assert((unsigned long long)(%s) == %vull, %[1]q);\n",
		expression, value)
}

// assertions has all that the file says, as the compiler of an architecture sees it, as
// assertions in C about the header.
func assertions(scope *types.Scope, sizes types.Sizes) (all string) {
	for _, name := range scope.Names() {
		switch object := scope.Lookup(name).(type) {
		case *types.Const:
			all += assertion("TIMEWHEEL_"+strings.ToUpper(inC(name)),
				constant.ToInt(object.Val()).ExactString())
		case *types.TypeName:
			all += structure("struct timewheel_"+inC(name),
				object.Type().Underlying().(*types.Struct), sizes)
		}
	}
	return all
}

func structure(name string, s *types.Struct, sizes types.Sizes) string {
	all := assertion("sizeof("+name+")", sizes.Sizeof(s))
	var fields []*types.Var
	for i := 0; i < s.NumFields(); i++ {
		fields = append(fields, s.Field(i))
		field, of := inC(fields[i].Name()), fields[i].Type()
		value := "((" + name + " *)0)->" + field
		signed := 0
		if basic, ok := of.(*types.Basic); ok && basic.Info()&types.IsUnsigned == 0 {
			signed = 1
		}
		all += assertion("offsetof("+name+", "+field+")", sizes.Offsetsof(fields)[i]) +
			assertion("sizeof("+value+")", sizes.Sizeof(of)) +
			assertion("_Generic("+value+", int: 1, long long: 1, default: 0)", signed)
	}
	return all
}

// compile lets the compiler check assertions. Nothing is run, as a kernel may be unable to
// run programs of 32 bits.
func compile(t *testing.T, flag, assertions string) (said string, err error) {
	source := filepath.Join(t.TempDir(), "layout.c")
	text := "#include <stddef.h>\n#include <linux/timewheel.h>\n" + assertions
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
		all := assertions(scope, types.SizesFor("gc", architecture))
		if count := strings.Count(all, "\n"); count < 200 {
			t.Fatalf("only %d assertions", count)
		}
		if said, err := compile(t, flag, all); err != nil {
			t.Errorf("%s: %s", architecture, said)
		}
		wrong := "sizeof(struct timewheel_event)"
		said, err := compile(t, flag, all+assertion(wrong, 1))
		if err == nil || !strings.Contains(said, wrong) {
			t.Errorf("%s: a wrong size is not seen: %s", architecture, said)
		}
	}
}

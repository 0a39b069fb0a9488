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

// The structures and constants as the compiler sees them.
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

// told is what Go says, and a C program that says the same of the header.
type told struct {
	lines   []string
	program []string
}

func (d *told) add(expression string, value string) {
	d.lines = append(d.lines, fmt.Sprintf("%s %s", expression, value))
	d.program = append(d.program, fmt.Sprintf(
		`	printf("%%s %%llu\n", "%s", (unsigned long long)(%s));`, expression, expression))
}

// describe tells of all that the file has, as the compiler of an architecture has it.
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

// toldByC compiles and runs the program.
func toldByC(t *testing.T, d *told, flag string) []string {
	folder := t.TempDir()
	source, program := filepath.Join(folder, "layout.c"), filepath.Join(folder, "layout")
	text := "#include <stddef.h>\n#include <stdio.h>\n#include <linux/timewheel.h>\n" +
		"int main(void)\n{\n" + strings.Join(d.program, "\n") + "\n}\n"
	if err := os.WriteFile(source, []byte(text), 0666); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command("cc", flag, "-I"+include, "-o", program,
		source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	said, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(said)), "\n")
}

// Each constant has the header's value, and each structure the header's size, and its
// fields the places, sizes and signs: on machines of 64 and of 32 bits.
func TestIsAsTheHeaderHasIt(t *testing.T) {
	scope := scope(t)
	for architecture, flag := range map[string]string{"amd64": "-m64", "386": "-m32"} {
		d := describe(scope, types.SizesFor("gc", architecture))
		if len(d.lines) < 200 {
			t.Fatalf("only %d lines", len(d.lines))
		}
		for i, line := range toldByC(t, d, flag) {
			if line != d.lines[i] {
				t.Errorf("%s: in the header %s, in Go %s", architecture, line,
					d.lines[i])
			}
		}
	}
}

// SPDX-License-Identifier: GPL-2.0-only

package uapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strings"
	"testing"
)

// undescribed collects public names of the package that have no comment.
type undescribed struct {
	names []string
	seen  int
}

func (u *undescribed) name(name *ast.Ident, comment *ast.CommentGroup) {
	if !name.IsExported() {
		return
	}
	u.seen++
	if strings.TrimSpace(comment.Text()) == "" {
		u.names = append(u.names, name.Name)
	}
}

func (u *undescribed) Visit(node ast.Node) ast.Visitor {
	switch n := node.(type) {
	case *ast.FuncDecl:
		u.name(n.Name, n.Doc)
		return nil
	case *ast.GenDecl:
		for _, spec := range n.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				u.name(s.Name, n.Doc)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if n.Lparen.IsValid() {
						u.name(name, s.Doc)
					} else {
						u.name(name, n.Doc)
					}
				}
			}
		}
	case *ast.Field:
		for _, name := range n.Names {
			u.name(name, n.Doc)
		}
	}
	return u
}

// Each public name of the packages has a comment: functions, methods, types, their fields, and
// constants.
func TestEveryPublicNameIsDescribed(t *testing.T) {
	for folder, least := range map[string]int{"../..": 100, "../../jobs": 30} {
		packages, err := parser.ParseDir(token.NewFileSet(), folder,
			func(file fs.FileInfo) bool {
				return !strings.HasSuffix(file.Name(), "_test.go")
			}, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		var u undescribed
		for _, one := range packages {
			ast.Walk(&u, one)
		}
		if len(u.names) > 0 || u.seen < least {
			t.Fatalf("of %d names these have no comment: %v", u.seen, u.names)
		}
	}
}

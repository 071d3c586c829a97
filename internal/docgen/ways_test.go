package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheTableOfWays compares the table of commands in the guide about nodes without SSH with the commands that
// tests run through the cluster: one row for each row of the end-to-end test, and whether the script of the
// simulated node runs the command, with the same subcommand, too.
func TestTheTableOfWays(t *testing.T) {
	simulated := map[string]bool{}
	script := read(t, filepath.Join(root, "internal/cli/testdata/script/viaways.txtar"))
	for _, match := range regexp.MustCompile(`(?m)^exits \d+ (.*) -c via\.yaml`).FindAllStringSubmatch(script, -1) {
		simulated[commandOf(match[1])] = true
	}
	want, ran := []string{"|---|---|---|"}, map[string]bool{}
	for _, row := range wayRows(t) {
		command := commandOf(row.line)
		yes := "no"
		if simulated[command] {
			yes = "yes"
		}
		want = append(want, "| `"+row.line+"` | "+row.compared+" | "+yes+" |")
		ran[command] = true
	}
	_, table, ok := strings.Cut(read(t, filepath.Join(root, "docs/guides/without-ssh.md")), "| command |")
	if !ok {
		t.Fatal("the guide has no table of commands")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	if diff := cmp.Diff(want, strings.Split(table, "\n")[1:]); diff != "" {
		t.Errorf("the table of commands (-tests +guide):\n%s", diff)
	}
	for command := range simulated {
		if !ran[command] && command != "rollback" && command != "cri version" { // a part of the rows of push and of cri
			t.Errorf("the end-to-end test lacks %s", command)
		}
	}
}

// commandOf returns the command of a line, with its subcommand if it has one.
func commandOf(line string) string {
	words := strings.Fields(strings.ReplaceAll(line, ",", " "))
	switch {
	case slices.Contains([]string{"cri", "hns", "hcs", "stats"}, words[0]), words[0] == "logs" && words[1] == "list":
		return strings.Join(words[:2], " ")
	}
	return words[0]
}

// wayRow is a row of the table of the end-to-end test.
type wayRow struct{ line, compared string }

// wayRows reads the rows from the source of the end-to-end test.
func wayRows(t *testing.T) (rows []wayRow) {
	t.Helper()
	path := filepath.Join(root, "e2e/via_commands_test.go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != "wayRows" {
			return true
		}
		for _, element := range spec.Values[0].(*ast.CompositeLit).Elts {
			rows = append(rows, rowOf(t, element.(*ast.CompositeLit)))
		}
		return false
	})
	if len(rows) == 0 {
		t.Fatalf("no table in %s", path)
	}
	return rows
}

func rowOf(t *testing.T, literal *ast.CompositeLit) (row wayRow) {
	t.Helper()
	var fields []string
	for _, element := range literal.Elts {
		field := element.(*ast.KeyValueExpr)
		switch field.Key.(*ast.Ident).Name {
		case "line":
			row.line = text(t, field.Value)
		case "compared":
			row.compared = text(t, field.Value)
		case "but":
			for _, name := range field.Value.(*ast.CompositeLit).Elts {
				fields = append(fields, "`"+text(t, name)+"`")
			}
		}
	}
	if row.compared == "" {
		row.compared = "JSON"
	}
	if fields != nil {
		row.compared += " without " + strings.Join(fields, ", ")
	}
	return row
}

func text(t *testing.T, literal ast.Expr) string {
	t.Helper()
	value, err := strconv.Unquote(literal.(*ast.BasicLit).Value)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestTheComparisonNamesItsTests expects that each row of the comparison with kubectl debug names tests that exist, and
// links the source of what it says about kubectl.
func TestTheComparisonNamesItsTests(t *testing.T) {
	var sources strings.Builder
	for _, pattern := range []string{"e2e/*_test.go", "internal/cli/*_test.go", "internal/node/viapod/*_test.go"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			sources.WriteString(read(t, file))
		}
	}
	_, table, ok := strings.Cut(read(t, filepath.Join(root, "docs/guides/without-ssh.md")), "| task | kubectl debug |")
	if !ok {
		t.Fatal("the guide does not compare")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(row, " | ")
		tests := regexp.MustCompile("`(Test\\w+)(?:/(\\w+))?`").FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(tests) == 0 {
			t.Errorf("no test: %s", row)
		}
		for _, test := range tests {
			if !strings.Contains(sources.String(), "func "+test[1]+"(t *testing.T)") {
				t.Errorf("there is no test %s", test[1])
			}
			if test[2] != "" {
				read(t, filepath.Join(root, "internal/cli/testdata/script", test[2]+".txtar"))
			}
		}
		if !strings.Contains(cells[1], "https://") {
			t.Errorf("no source: %s", row)
		}
	}
}

package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/inspect/doctor"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
	"github.com/swdt-dev/swdt/internal/ui/result"
)

// Every command that a rule proposes exists, with its flags and arguments, and is
// written so that swdt adds the node of the finding.
func TestRemediesOfRulesCanBePasted(t *testing.T) {
	for _, rule := range doctor.Rules() {
		checkRemedy(t, "rule "+rule.ID, rule.Remedy)
	}
}

// The same holds for every text in swdt's code, such as those of errors and of preflight.
func TestCommandsInTextsCanBePasted(t *testing.T) {
	found := 0
	for _, folder := range []string{"../../internal", "../../cmd"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.Contains(path, "internal/ui/remedy/") ||
				strings.Contains(path, "internal/platform/simulated/") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, literal := range textsForPeople(file) {
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					return err
				}
				found += len(remedy.Commands(text))
				checkRemedy(t, files.Position(literal.Pos()).String(), verb.ReplaceAllString(text, "containerd"))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 100 {
		t.Errorf("only %d commands were found: the test does not look at them any more", found)
	}
}

// These patterns are compiled once: the tests match them against every text of swdt's code.
var (
	verb        = regexp.MustCompile(`%(\[\d+\])?[-+#.\d]*[sdqvcx]`)
	backquoted  = regexp.MustCompile("`[^`]*`")
	bareCommand = regexp.MustCompile(`(\S*) ?\bswdt (setup|join|kubernetes|push|rollback|status|exec|shell|powershell|cp|` +
		`logs|events|ps|hns|hcs|cri|stats|trace|doctor|reset|capture|diag)\b`)
	bareKubectl = regexp.MustCompile(
		`\bkubectl (annotate|auth|cordon|delete|describe|drain|get|label|logs|patch|taint|uncordon)\b`)
)

// textsForPeople returns a file's string literals, without help, which is about every
// invocation, and without texts that are built in pieces.
func textsForPeople(file *ast.File) (literals []*ast.BasicLit) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			key, ok := n.Key.(*ast.Ident)
			return !ok || !slices.Contains([]string{"Long", "Short", "Example", "long", "short"}, key.Name)
		case *ast.CallExpr:
			called, ok := n.Fun.(*ast.Ident)
			return !ok || called.Name != "examples"
		case *ast.ImportSpec, *ast.Field:
			return false
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				literals = append(literals, n)
			}
		}
		return true
	})
	return literals
}

func checkRemedy(t *testing.T, where, text string) {
	t.Helper()
	for _, args := range remedy.Commands(text) {
		if args[0] == remedy.Kubectl {
			continue
		}
		if problem := problemOf(args); problem != "" {
			t.Errorf("%s: `%s`: %s", where, strings.Join(args, " "), problem)
		}
	}
	unquoted := backquoted.ReplaceAllString(text, "")
	if strings.HasPrefix(text, "swdt ") { // a command line by itself
		return
	}
	if bare := bareKubectl.FindString(unquoted); bare != "" && !strings.Contains(text, "kubectl logs and exec") {
		t.Errorf("%s: %q stands outside of backquotes, so it does not get the kubeconfig", where, bare)
	}
	if bare := bareCommand.FindStringSubmatch(unquoted); bare != nil && !isMention(bare[1]) {
		t.Errorf("%s: %q stands outside of backquotes, so it gets neither node nor node file", where, bare[0])
	}
}

// isMention reports whether the word before a command shows that the text only mentions
// the command and does not propose to type it.
func isMention(before string) bool {
	return strings.HasPrefix(before, "\"") ||
		slices.Contains([]string{"by", "as", "of", "what", "while", "Written", "with"}, before)
}

// problemOf returns what is wrong with a proposed command, or "".
func problemOf(args []string) string {
	a := &app{streams: ui.Streams{}, env: Environment{}.complete()}
	root := a.rootCommand()
	command, rest, err := root.Find(args[1:])
	if err != nil {
		return err.Error()
	}
	if err := command.ParseFlags(rest); err != nil {
		return err.Error()
	}
	if err := command.ValidateArgs(command.Flags().Args()); err != nil && len(rest) > 0 {
		return err.Error()
	}
	for _, flag := range []string{"config", "node"} {
		if f := command.Flags().Lookup(flag); f != nil && f.Changed && command.Annotations[usesNodes] != "" {
			return "it names --" + flag + ", which internal/cli adds"
		}
	}
	return ""
}

// A proposed command has the flags of the invocation that proposes it, and is for
// the node of the finding.
func TestRemediesKeepTheInvocation(t *testing.T) {
	for _, c := range []struct {
		name, node, text, want string
		loaded                 int
		cluster                bool // the cluster is that of a document
		args                   []string
	}{
		{name: "node files with a space", node: "n1", loaded: 3,
			args: []string{"-c", "my nodes.yaml", "-c", "b,c.yaml", "doctor"},
			text: "see why: `swdt logs kubelet --tail 50`; `swdt cri status`",
			want: "see why: `swdt logs kubelet --tail 50 -c 'my nodes.yaml' -c b,c.yaml -n n1`; " +
				"`swdt cri status -c 'my nodes.yaml' -c b,c.yaml -n n1`"},
		{name: "before --", node: "n1", loaded: 3, args: []string{"doctor", "-n", "n1,n2"},
			text: "`swdt exec -- net stop hns`", want: "`swdt exec -n n1 -- net stop hns`"},
		{name: "one node alone", node: "n1", loaded: 1, args: []string{"doctor"}, text: "`swdt status`",
			want: "`swdt status`"},
		{name: "no node in particular", loaded: 3, args: []string{"push", "-n", "n1", "-n", "n2", "-l", "os=2022"},
			text: "`swdt status`", want: "`swdt status -n n1,n2 -l os=2022`"},
		{name: "facts of a file", node: "n1", args: []string{"doctor", "--facts", "x"},
			text: "`swdt reset --no-drain`", want: "`swdt reset --no-drain -n n1`"},
		{name: "how nodes and the cluster are reached", node: "n1", loaded: 1,
			args: []string{"join", "--known-hosts", "kh", "--ssh-config", "cfg", "--kubeconfig", "a.conf", "--context",
				"c"},
			text: "`swdt reset`, then `swdt join --kubeconfig FILE`; `swdt status`",
			want: "`swdt reset --known-hosts kh --ssh-config cfg --kubeconfig a.conf --context c`, then " +
				"`swdt join --kubeconfig FILE --known-hosts kh --ssh-config cfg --context c`; " +
				"`swdt status --known-hosts kh --ssh-config cfg`"},
		{name: "a command for a cluster", node: "n1", loaded: 1,
			args: []string{"-c", "a.yaml", "join", "--kubeconfig", "a.conf"},
			text: "`swdt network install --force`", want: "`swdt network install --force --kubeconfig a.conf`"},
		{name: "a command for the cluster of a document", cluster: true,
			args: []string{"network", "install", "-c", "my cluster.yaml", "--kubeconfig", "a.conf"},
			text: "`swdt network install --force`; `swdt cluster status`; `swdt network remove flannel`",
			want: "`swdt network install --force -c 'my cluster.yaml' --kubeconfig a.conf`; `swdt cluster status`; " +
				"`swdt network remove flannel -c 'my cluster.yaml' --kubeconfig a.conf`"},
		{name: "not on nodes", node: "n1", loaded: 3, args: []string{"-c", "a.yaml", "status"},
			text: "`swdt config init --write`, `swdt help exit-codes`",
			want: "`swdt config init --write`, `swdt help exit-codes`"},
		{name: "a node already", loaded: 3, args: []string{"push", "-n", "n1", "-l", "os=2022"},
			text: "`swdt status -n n2`", want: "`swdt status -n n2`"},
		{name: "kubectl", node: "n1", loaded: 3, args: []string{"-c", "a.yaml", "doctor", "--kubeconfig", "a b.conf",
			"--context", "c"},
			text: "`kubectl exec -n ns p -- ls`; `kubectl get nodes --context=d | wc`; `kubectl swdt version`",
			want: "`kubectl exec -n ns p --kubeconfig 'a b.conf' --context c -- ls`; " +
				"`kubectl get nodes --context=d --kubeconfig 'a b.conf' | wc`; `kubectl swdt version`"},
		{name: "kubectl without a kubeconfig", node: "n1", loaded: 1, args: []string{"doctor"},
			text: "`kubectl get nodes`", want: "`kubectl get nodes`"},
		{name: "a setting of --via more", node: "n1",
			args: []string{"status", "-n", "n1", "--via", "kubernetes,context=c,namespace=own,keep"},
			text: "`swdt status --via kubernetes,shared`; `swdt status --via kubernetes,namespace=x --print-rbac`",
			want: "`swdt status --via kubernetes,shared,context=c,namespace=own,keep -n n1`; " +
				"`swdt status --via kubernetes,namespace=x,context=c,keep --print-rbac`"},
		{name: "a name from a node", node: "n1", loaded: 2, args: []string{"doctor"},
			text: remedy.Command("exec", "--", "netsh", "name=`a`; $(b)"),
			want: "`swdt exec -n n1 -- netsh $'name=\\140a\\140; $(b)'`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &app{env: Environment{Getenv: func(string) string { return "" }}}
			a.root, a.loaded, a.readCluster = a.rootCommand(), c.loaded, c.cluster
			for _, command := range allCommands(a.root) {
				command.Run, command.RunE = nil, func(cmd *cobra.Command, _ []string) error { return nil }
			}
			a.root.SetArgs(c.args)
			if err := a.root.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := a.remedies(c.node, c.text); got != c.want {
				t.Errorf("got\n%s, want\n%s", got, c.want)
			}
			if again := a.remedies(c.node, a.remedies(c.node, c.text)); again != c.want {
				t.Errorf("a second time:\n%s", again)
			}
		})
	}
}

// Names of nodes may come from a file of facts: a comma in a name does not split it.
func TestRemediesForSeveralNodes(t *testing.T) {
	a := &app{env: Environment{Getenv: func(string) string { return "" }}}
	a.root, a.loaded = a.rootCommand(), 3
	for want, nodes := range map[string][]string{
		"`swdt exec -n n1,n10 -- net stop hns`":               {"n1", "n10"},
		"`swdt exec -n 'n1," + `"a,b"` + "' -- net stop hns`": {"n1", "a,b"},
		"`swdt exec -n 'n1,$(touch x)' -- net stop hns`":      {"n1", "$(touch x)"},
	} {
		if got := a.remediesOn(nodes, "`swdt exec -- net stop hns`"); got != want {
			t.Errorf("%q: got %s, want %s", nodes, got, want)
		}
	}
}

// A text that a package prints to stdout itself proposes commands in the same form as
// errors do.
func TestCommandsOnAPageKeepTheInvocation(t *testing.T) {
	var out strings.Builder
	a := &app{streams: ui.Streams{Out: &out}, env: Environment{Getenv: func(string) string { return "" }}}
	a.root, a.loaded, a.printer = a.rootCommand(), 2, &printer{Writer: result.Writer{Format: result.Text}}
	a.global.config, a.global.nodes = []string{"my nodes.yaml"}, []string{"n2"}
	report := push.StatusReport{Nodes: []push.NodeStatus{{Name: "n2", Result: "ok"}}}
	if err := a.print(report, report.WriteText); err != nil {
		t.Fatal(err)
	}
	if want := "`swdt ps -c 'my nodes.yaml' -n n2` lists the services"; !strings.Contains(out.String(), want) {
		t.Errorf("the page has not %s:\n%s", want, out.String())
	}
}

// stdoutByHand returns the files that use stdout without a Page, with the reasons.
func stdoutByHand() map[string]string {
	programs, terminal := "streams of programs on the node", "asks whether it is a terminal"
	return map[string]string{
		"results.go": "has the printer, and makes the Page", "push_watch.go": "records", "status_watch.go": "records",
		"ps.go":             "records, and the live screen",
		"paged.go":          "the pager",
		"fleet_rollouts.go": "records, and the live screen",
		"stats_watch.go":    "records, CSV, and the live screen", "capture_run.go": "packets",
		"cri_proxy.go": programs, "exec.go": programs, "shell.go": programs, "hcs_inside.go": programs,
		"lint.go":      "SARIF, JUnit and annotations of GitHub",
		"logs.go":      "lines of logs",
		"hns_graph.go": "pictures", "stats_report.go": "the HTML page", "stats_serve.go": "an address",
		"config.go": "files to redirect", "completion.go": "a script for a shell", "root.go": "cobra's help",
		"via.go":     "a manifest to redirect",
		"sandbox.go": "the background process", "push_then.go": "streams of a command that is a part",
		"prompt.go": terminal, "rows.go": terminal,
	}
}

func TestStdoutIsWrittenByPages(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, known := stdoutByHand()[file]
		if refers := strings.Contains(string(text), "streams.Out"); refers != known {
			t.Errorf("%s refers to stdout by hand: %t; stdoutByHand lists it: %t", file, refers, known)
		}
	}
}

func allCommands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, child := range cmd.Commands() {
		all = append(all, allCommands(child)...)
	}
	return all
}

func TestRemediesOfThePlugin(t *testing.T) {
	a := &app{env: Environment{Program: "kubectl-swdt", Getenv: func(string) string { return "" }}}
	a.root = a.rootCommand()
	for text, want := range map[string]string{
		"`swdt status`":                  "`kubectl swdt status --node n1`",
		"`swdt ps -n n2`":                "`kubectl swdt ps --node n2`",
		"`swdt exec -- ctr -n k8s.io t`": "`kubectl swdt exec --node n1 -- ctr -n k8s.io t`",
	} {
		if got := a.remedies("n1", text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

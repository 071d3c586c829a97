//go:build linux || darwin

package cli_test

import (
	"bytes"
	"context"
	"hash/fnv"
	"io"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/testing/workdir"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/handshake"
)

// evil is text of a node that must never reach a terminal: it sets the title, clears the
// screen, colours, returns to the start of the line and reverses the writing direction.
const evil = "\x1b]0;evil\a\x1b[2J\u009b31m\rx\u202e\x7f"

// obeyed finds evil in the output on a terminal. The terminal itself turns the end of a
// line into CR LF.
var obeyed = regexp.MustCompile("\x1b\\]|\x1b\\[2J|\u009b|\u202e|\x7f|\a|\rx")

// lie selects which of a node's answers a round changes.
type lie struct {
	bit    uint // of a field's hash; 0: all of them
	errors bool // calls end with an error instead
}

// tamper puts evil into each field of text or bytes.
func (l lie) tamper(seen *atomic.Int64) nodetest.Tamper {
	return func(method string, _ int, reply proto.Message, send func(proto.Message) error) error {
		if l.errors && !strings.Contains(method, "Machine/") {
			seen.Add(1)
			return status.Error(codes.Unknown, "open the file: "+evil)
		}
		l.change(reply.ProtoReflect(), seen)
		return send(reply)
	}
}

func (l lie) change(m protoreflect.Message, seen *atomic.Int64) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		lies := func() bool {
			h := fnv.New32a()
			h.Write([]byte(field.FullName()))
			return l.bit == 0 || h.Sum32()>>l.bit&1 == 1
		}
		one := func(v protoreflect.Value) protoreflect.Value {
			switch field.Kind() {
			case protoreflect.StringKind:
				seen.Add(1)
				return protoreflect.ValueOfString(v.String() + evil)
			case protoreflect.BytesKind:
				seen.Add(1)
				return protoreflect.ValueOfBytes(append(bytes.Clone(v.Bytes()), evil+"\n"...))
			}
			return v
		}
		scalar := field.Kind() == protoreflect.StringKind || field.Kind() == protoreflect.BytesKind
		switch {
		case field.IsMap():
		case field.IsList():
			for i := range value.List().Len() {
				if field.Message() != nil {
					l.change(value.List().Get(i).Message(), seen)
				} else if scalar && lies() {
					value.List().Set(i, one(value.List().Get(i)))
				}
			}
		case field.Message() != nil:
			l.change(value.Message(), seen)
		case scalar && lies():
			m.Set(field, one(value))
		}
		return true
	})
}

// lyingAgent is an agent whose answers are changed on the way.
func lyingAgent(now *atomic.Pointer[lie], seen *atomic.Int64) func(hash string) simulated.AgentMain {
	return func(hash string) simulated.AgentMain {
		honest := sandbox.AgentMain(hash)
		return func(ctx context.Context, p *platform.Platform, executable string, args []string, stdin io.Reader,
			stdout, stderr io.Writer) int {
			l := now.Load()
			if len(args) > 0 || l == nil { // a guardian
				return honest(ctx, p, executable, args, stdin, stdout, stderr)
			}
			near, far := net.Pipe()
			ended := make(chan int, 1)
			go func() {
				ended <- honest(ctx, p, executable, args, far, far, stderr)
				far.Close()
			}()
			if err := handshake.Dial(near, hash); err != nil {
				return 1
			}
			between, stop, err := nodetest.Between(near, l.tamper(seen))
			if err != nil {
				return 1
			}
			outside := struct {
				io.Reader
				io.Writer
			}{stdin, stdout}
			if err := handshake.Serve(outside, hash); err == nil {
				go func() {
					_, _ = io.Copy(between, stdin)
					between.Close()
				}()
				_, _ = io.Copy(stdout, between)
			}
			stop()
			near.Close()
			return <-ended
		}
	}
}

// shownCommands returns command lines of every command that shows a node's answers. The
// other commands contact no node, or notShown has the reason.
func shownCommands() map[string][]string {
	return map[string][]string{
		"status": nil, "setup": nil, "push": {"--force"}, "rollback": {"kubelet"}, "restart": {"kubelet"}, "services": nil, "top": nil, "doctor": nil, "doctor compare": {"win", "good.json"},
		"history": nil,
		"cp":      {"win:C:\\k\\x.txt", "here.txt"}, "logs": {"file:C:\\k\\x.txt"}, "logs list": nil,
		"events":  {"--tail", "5"},
		"capture": {"--for", "50ms"}, "capture counters": nil, "capture vfp": nil,
		"capture fetch": {"-w", "fetched.pcapng"},
		"ps":            nil, "hns networks": nil, "hns endpoints": nil, "hns loadbalancers": nil, "hns policies": nil,
		"hns namespaces": nil,
		"hns graph":      nil, "hns remove": {"Calico", "--dry-run"}, "hcs list": nil, "hcs kill": {"default/burner/burn", "--dry-run"},
		"cri version": nil, "cri status": nil, "cri pods": nil, "cri containers": nil, "cri images": nil,
		"cri stats":   nil,
		"stats watch": {"--for", "300ms", "--interval", "100ms"}, "trace status": nil, "trace on": {"--dry-run"},
		"trace off": {"--dry-run"},
		"diag":      {"--out", "bundle.tar.gz"}, "diag dump": nil,
		"selftest": {"--only", "facts,files"},

		"upgrade check":      {"--kubernetes", "1.36"},
		"kubelet config get": nil, "kubelet config diff": nil, "kubelet config unset": {"maxPods", "--dry-run"},
		"kubelet features diff": nil, "kube-proxy features get": nil,
	}
}

// notShown returns the other commands, with the reasons.
func notShown() map[string]string {
	const raw, here, parent = "its output is a program's of the user's own, or a stream for one",
		"it contacts no node", "it only holds others"
	const steps = "it shows the steps of a node as setup does"
	// A hypervisor, a container runtime, an image or an API server answers these. ui's tests show that
	// no page passes a control sequence on.
	const page = "no agent answers, and its result passes a ui.Page"
	reasons := map[string]string{
		"exec": raw, "shell": raw, "powershell": raw, "hcs read": raw, "hcs exec": raw,
		"forward": "it runs until Ctrl-C, and prints addresses of this machine", "rdp": "it runs as forward does", "attach": "it runs as forward does",
		"cri proxy": "it runs until Ctrl-C, and tells the story", "stats serve": raw,
		"diag show": here, "diag dump show": here, "stats compare": here, "stats report": here, "stats soak": here, "cri env": here, "config": parent,
		"config init": here, "config validate": here, "config trust": here, "config untrust": here, "config list": here,
		"config schema": here, "config convert": here, "sandbox": parent, "sandbox up": here, "sandbox status": here,
		"sandbox down": here, "version": here, "lint": here,
		"completion": here, "options": here, "help exit-codes": here, "hns": parent, "hcs": parent, "cri": parent,
		"stats": parent, "trace": parent,
		"join":    "it needs a cluster, and tells the story of its steps as setup does",
		"reset":   "it needs a node that has joined, and shows its steps as setup does",
		"upgrade": parent, "upgrade node": "it needs a node that has joined, and shows its steps as setup does",
		"up": steps, "down": steps, "vm image bake": steps,
		"cluster": parent, "network": parent, "vm": parent, "vm snapshot": parent, "vm network": parent,
		"vm image": parent, "image": parent, "readiness": parent, "readiness list": here, "readiness report": here,
		"scale": parent, "scale report": here, "scale compare": here,
		"scale run":    "it needs a cluster; TestHostileNodes of package scale shows that its text is printable",
		"cluster init": here, "cluster kubeconfig": raw,
		"netpol": parent, "netpol list": here, "netpol explain": here,
		"fleet": parent, "selftest compare": here,
	}
	for _, command := range []string{
		"cluster create", "cluster delete", "cluster status", "cluster check",
		"network install", "network status", "network services", "network remove", "e2e", "e2e list", "e2e compare",
		"readiness run", "netpol run", "fleet publish",
		"fleet install", "fleet uninstall", "fleet status", "fleet watch", "fleet pause", "fleet resume", "fleet abort",
		"fleet rollback",
		"vm check", "vm create", "vm delete", "vm start", "vm stop", "vm restart", "vm list", "vm status",
		"vm snapshot save", "vm snapshot restore", "vm snapshot list", "vm snapshot remove",
		"vm address", "vm console", "vm screenshot", "vm keys",
		"vm network check", "vm network prepare", "vm network remove",
		"vm image inspect", "vm image build", "vm image list", "vm image remove", "image check", "image list", "image pull",
	} {
		reasons[command] = page
	}
	for _, command := range []string{
		"kubelet config set", "kubelet config undo", "kubelet features get", "kubelet features set", "kubelet features unset",
		"kube-proxy config get", "kube-proxy config set", "kube-proxy config unset", "kube-proxy config diff",
		"kube-proxy config undo", "kube-proxy features set", "kube-proxy features unset", "kube-proxy features diff",
	} {
		reasons[command] = "it is the same code as a command of the other program that is shown"
	}
	for _, command := range []string{"kubelet", "kubelet config", "kubelet features", "kube-proxy", "kube-proxy config",
		"kube-proxy features"} {
		reasons[command] = parent
	}
	return reasons
}

// Every command, also a new one, must be in one of the lists.
func TestEveryCommandIsTriedOnATerminal(t *testing.T) {
	reference, err := os.ReadFile("../../docs/reference/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, match := range regexp.MustCompile(`(?m)^## swdt (.+)$`).FindAllStringSubmatch(string(reference), -1) {
		count++
		_, shown := shownCommands()[match[1]]
		_, not := notShown()[match[1]]
		if shown == not {
			t.Errorf("%s: tried %v, excused %v", match[1], shown, not)
		}
	}
	if count < 50 {
		t.Errorf("only %d commands in the reference", count)
	}
}

// No control sequence of a node reaches the user's terminal, whatever string of the
// node's answers contains it.
func TestNoNodeCommandsTheTerminal(t *testing.T) {
	var now atomic.Pointer[lie]
	var seen atomic.Int64
	w := &workplace{t: t, folder: t.TempDir()}
	workdir.Change(t, w.folder)
	var document string
	w.machine, document, _ = simulatedNodeWith(t, "win", w.folder, lyingAgent(&now, &seen))
	w.machine.WriteFile(`C:\k\x.txt`, []byte("a line\n"))
	w.write("swdt.yaml",
		[]byte(strings.Replace(document, "  kubernetes:\n",
			"  setup:\n    hosts: [{address: 10.0.0.1, names: [api]}]\n  kubernetes:\n", 1)))
	w.build("1.0.0")
	if code, _ := w.swdt(t.Context(), &lines{}, "push"); code != 0 {
		t.Fatalf("the honest node: exit code %d", code)
	}
	if code, _ := w.swdt(t.Context(), &lines{}, "doctor", "--save-facts", "good.json", "--fail-on", "never"); code != 0 {
		t.Fatalf("the facts of the honest node: exit code %d", code)
	}
	rounds := []lie{{}, {errors: true}, {bit: 3}}
	for _, name := range slices.Sorted(maps.Keys(shownCommands())) {
		t.Run(name, func(t *testing.T) {
			before := seen.Load()
			for _, round := range rounds {
				now.Store(&round)
				args := slices.Concat(strings.Fields(name), shownCommands()[name], []string{"-c", "swdt.yaml"})
				for _, more := range [][]string{nil, {"-v", "-o", "json"}, {"piped"}} {
					if len(more) > 0 && round.bit > 0 {
						continue
					}
					var text string
					if slices.Contains(more, "piped") { // text for people, even if it is piped
						text = piped(t, args)
					} else {
						text = onTerminal(t, append(args, more...))
					}
					if at := obeyed.FindStringIndex(text); at != nil {
						t.Errorf("%+v %v: the terminal got %q", round, more,
							text[max(0, at[0]-80):min(len(text), at[1]+40)])
					}
				}
			}
			if seen.Load() == before {
				t.Errorf("the node was not asked: this tests nothing")
			}
		})
	}
}

// piped runs a command whose output is not a terminal.
func piped(t *testing.T, args []string) string {
	t.Helper()
	var out, story bytes.Buffer
	cli.Run(t.Context(), ui.Streams{Out: &out, Err: &story},
		args, cli.Environment{Agent: agent, Getenv: func(string) string { return "" }})
	return out.String() + story.String()
}

// onTerminal runs a command whose stdout and stderr are one terminal, and returns the
// output on that terminal.
func onTerminal(t *testing.T, args []string) string {
	t.Helper()
	screen := newTerminal(t, 40, 200)
	cli.Run(t.Context(), ui.Streams{Out: screen.File, Err: screen.File},
		args, cli.Environment{Agent: agent, Getenv: func(string) string { return "" }})
	return strings.ReplaceAll(screen.hangUp(), "\r\n", "\n")
}

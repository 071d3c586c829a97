package scale_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swdt-dev/swdt/internal/proof/scale"
	"github.com/swdt-dev/swdt/internal/testing/browsertest"
	"github.com/swdt-dev/swdt/internal/ui"
)

// evil is text that must reach neither a terminal nor a browser as more than text.
const evil = "\x1b]0;evil\a<script>alert(1)</script>\u202e"

// report returns the report of a run with a problem of each kind.
func report(t *testing.T, change ...func(*scale.NodePhase)) scale.Report {
	t.Helper()
	create := scale.NodePhase{Phase: scale.Create, Services: 200, Programmed: 198,
		Time: scale.Spread{Half: 2, P90: 4, P99: 8, Max: 9}, Resolution: scale.Spread{Half: 0.5, P90: 1, P99: 1, Max: 1},
		Metrics: true, Syncs: scale.Syncs{Count: 4, MeanSeconds: 1.5, MaxSeconds: 2.048},
		CPU: scale.CPU{ProxySeconds: 3, HNSSeconds: 5, AgentSeconds: 1}, ProxyMemoryBytes: 50 << 20, ProxyHandles: 300,
		ProxyRestarts: 1, FaultCount: 2, Faults: []scale.Fault{
			{Service: "service-00007", Address: "10.96.0.7", Problem: scale.Missing},
			{Service: "service-00009", Address: evil, Problem: evil}}}
	for _, c := range change {
		c(&create)
	}
	n := scale.NodeReport{Name: "win-1", Phases: []scale.NodePhase{create},
		Failures: []scale.Failure{{Source: scale.FromLog, Message: "Endpoint deletion failed " + evil, Count: 12}},
		Cost:     scale.Cost{Calls: 90, Bytes: 5 << 20, Looks: 12, LookSeconds: 1.5, AgentCPUSeconds: 1}}
	for s := range 60 {
		n.Samples = append(n.Samples, scale.Sample{Seconds: float64(s), Phase: scale.Create, Written: min(200, 10*s),
			Programmed: min(198, 5*s), PendingServices: float64(s % 9), ProxyCores: 0.5, ProxyMemoryBytes: 50 << 20})
	}
	return scale.Report{Result: scale.Failed, Cluster: "https://api", Kubernetes: "v1.36.3", Namespace: "swdt-scale-0",
		Load:  scale.Load{Services: 200, Endpoints: 500, Range: scale.DefaultRange},
		Begin: time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC), Seconds: 60, Folder: t.TempDir(), Leftovers: []string{},
		Phases: []scale.PhaseWrites{{Phase: scale.Create, Writes: scale.Writes{Objects: 400, Seconds: 4, Limit: 100,
			Request: scale.Spread{Half: 0.002, P90: 0.004, P99: 0.01, Max: 0.02}}}},
		Nodes: []scale.NodeReport{n}}
}

func text(t *testing.T, write func(*ui.Page) error, wide bool) string {
	t.Helper()
	var b bytes.Buffer
	p := ui.NewPage(&b, false)
	p.Wide = wide
	if err := errors.Join(write(p), p.Flush()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTheReportAsText(t *testing.T) {
	got := text(t, report(t).WriteText, false)
	for _, want := range []string{
		"win-1  create  198 of 200  2.0s  4.0s  8.0s  9.0s  0.5s        4      3.0s       5.0s     52.4 MB\n",
		"win-1: create: service-00007 (10.96.0.7): HNS has no load balancer with its address\n",
		"win-1: create: the proxy's process ended 1 times\n",
		"win-1: the proxy logged: 12 × Endpoint deletion failed ",
		"API server: create: 400 requests in 4.0s, at most 100 a second; half took 2ms, 99% 10ms\n",
		"swdt itself: win-1: 90 calls, 5.2 MB; 12 looks at HNS took 1.5s; its agent used 1.0s of CPU time\n",
		"failed: 200 Services with 500 endpoints on 1 node in 1m00s\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the text lacks %q:\n%s", want, got)
		}
	}
	if strings.ContainsAny(got, "\x1b\a\u202e") {
		t.Errorf("a text of the node reaches the terminal: %q", got)
	}
}

func TestThePageInABrowser(t *testing.T) {
	r := report(t)
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{1400, 400} {
		page := browsertest.Open(t, filepath.Join(r.Folder, scale.PageName), width, 900)
		if n := browsertest.Eval[int](page, `document.querySelectorAll("script, img, iframe, link").length`); n != 0 {
			t.Errorf("%d elements of the page come from texts of nodes", n)
		}
		if n := browsertest.Eval[int](page, `document.querySelectorAll("svg polyline").length`); n != 8 {
			t.Errorf("%d curves, want 8", n)
		}
		if wide := browsertest.Eval[bool](page,
			`document.documentElement.scrollWidth > document.documentElement.clientWidth`); wide {
			t.Errorf("the page is wider than %d pixels", width)
		}
		page.LooksRight()
	}
}

func TestFilesThatAreNoReport(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{
		"empty": "", "no JSON": "x", "another document": `{"nodes":[]}`,
		"numbers": `{"result":"failed","load":{"services":1e99}}`,
	} {
		path := filepath.Join(folder, "x.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := scale.LoadReport(path)
		if err == nil || !strings.Contains(err.Error(), "are these the results of `swdt scale run`?") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := scale.LoadReport(filepath.Join(folder, "nowhere")); err == nil ||
		!strings.Contains(err.Error(), "name the folder of the results of `swdt scale run`") {
		t.Errorf("nothing: %v", err)
	}
}

// A report may come from anywhere; its page is made again from what was read.
func FuzzReport(f *testing.F) {
	f.Add(`{"result":"failed","load":{"services":1},"nodes":[{"samples":[{"seconds":-1},{"seconds":1e300,"written":-5}]}]}`)
	f.Add(`{"result":"` + "\\u001b" + `","load":{"services":1},"nodes":[{"phases":[{"phase":"<b>","time":{"half":1e300}}]}]}`)
	f.Fuzz(func(t *testing.T, content string) {
		path := filepath.Join(t.TempDir(), "x.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := scale.LoadReport(path)
		if err != nil {
			return
		}
		var page bytes.Buffer
		if err := r.WritePage(&page); err != nil {
			t.Error(err)
		}
		if strings.Contains(page.String(), "NaN") && !strings.Contains(content, "NaN") {
			t.Error("a coordinate is no number")
		}
		if shown := text(t, r.WriteText, true); strings.Contains(shown, "\x1b") {
			t.Errorf("%q", shown)
		}
	})
}

func TestCompare(t *testing.T) {
	before := report(t)
	after := report(t, func(p *scale.NodePhase) {
		p.Time = scale.Spread{Half: 2.9, P90: 4, P99: 12, Max: 9.5} // half differs by less than the resolution
		p.CPU.ProxySeconds, p.FaultCount = 1, 3
	})
	after.Nodes[0].Name = "win-2" // the only node of each run
	c, err := scale.Compare(before, after, scale.DefaultTolerance)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, v := range c.Values {
		if v.Change != scale.Same {
			got = append(got, fmt.Sprintf("%s %s %s %s", v.Node, v.Phase, v.Name, v.Change))
		}
	}
	want := []string{"win-2 create problems worse", "win-2 create 99% worse", "win-2 create proxy CPU better"}
	if diff := cmp.Diff(want, got); diff != "" || !c.Worse() {
		t.Errorf("worse: %v (-want +got)\n%s", c.Worse(), diff)
	}
	const line = "worse   win-2  create  99%        8.0s    12.0s  +50%\n"
	if shown := text(t, c.WriteText, false); !strings.Contains(shown, line) {
		t.Errorf("the text:\n%s", shown)
	}
	var not *scale.IncomparableError
	after.Load.Services = 201
	if _, err := scale.Compare(before, after, 20); !errors.As(err, &not) {
		t.Errorf("another load: %v", err)
	}
	after.Load, after.Nodes = before.Load, nil
	if _, err := scale.Compare(before, after, 20); !errors.As(err, &not) {
		t.Errorf("no node: %v", err)
	}
}

// A node may answer anything: the run ends, its numbers are numbers, and no text of the node reaches the
// terminal.
func TestHostileNodes(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(proto.Message){
		"control sequences": func(m proto.Message) { replaceTexts(m.ProtoReflect()) },
		"nothing":           proto.Reset,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			o := options(t, w)
			o.Load, o.Wait = scale.Load{Services: 3, Endpoints: 3, Range: scale.DefaultRange}, 300*time.Millisecond
			w.node.Tamper(func(_ string, _ int, reply proto.Message, send func(proto.Message) error) error {
				change(reply)
				return send(reply)
			})
			report, err := scale.Run(t.Context(), w.Cluster, o)
			if err == nil {
				t.Errorf("no error: %+v", report)
			}
			if shown := text(t, report.WriteText, true); strings.ContainsAny(shown, "\x1b\a\u202e") {
				t.Errorf("%q", shown)
			}
			if names, _ := w.namespaces(t); len(names) > 0 {
				t.Errorf("left: %q", names)
			}
		})
	}
}

// replaceTexts adds evil to each text and byte string of a message.
func replaceTexts(m protoreflect.Message) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsList() && field.Message() != nil:
			for i := range value.List().Len() {
				replaceTexts(value.List().Get(i).Message())
			}
		case field.IsList() || field.IsMap():
		case field.Message() != nil:
			replaceTexts(value.Message())
		case field.Kind() == protoreflect.StringKind:
			m.Set(field, protoreflect.ValueOfString(value.String()+evil))
		case field.Kind() == protoreflect.BytesKind:
			m.Set(field, protoreflect.ValueOfBytes(append([]byte{}, evil...)))
		}
		return true
	})
}

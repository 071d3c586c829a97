package hang

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/goroutines"
	"github.com/swdt-dev/swdt/internal/format/redact"
)

// Bounds on the files that Open reads. A dump of 100 shims has about 10 MB.
const (
	largestFile   = 64 << 20
	mostNodes     = 1000
	mostProcesses = 2000
	mostGroups    = 20_000
	mostFrames    = 128
)

// NoDumpError reports a file that is not a dump.
type NoDumpError struct {
	Path string
	Why  string
}

func (e *NoDumpError) Error() string {
	return e.Path + " is not a dump: " + e.Why + "; `swdt diag dump -o json >FILE` makes one"
}

// Open reads a file: a document of `swdt diag dump -o json`, or the goroutines of one program as text, which containerd writes
// for its event and other programs serve as /debug/pprof/goroutine?debug=2. The file may come from a stranger: what it says
// about waits is computed anew from its goroutines, and its texts are bounded and redacted.
func Open(path string) (Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return Report{}, fmt.Errorf("read the dump: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, largestFile+1))
	if err != nil {
		return Report{}, fmt.Errorf("read the dump: %w", err)
	}
	if len(content) > largestFile {
		return Report{}, &NoDumpError{path, fmt.Sprintf("it is larger than %d MiB", largestFile>>20)}
	}
	if text := bytes.TrimLeft(content, " \t\r\n\ufeff"); len(text) > 0 && text[0] == '{' {
		return readDocument(path, text)
	}
	return readText(path, content)
}

func readDocument(path string, content []byte) (r Report, err error) {
	if err := json.Unmarshal(content, &r); err != nil {
		return Report{}, &NoDumpError{path, "its JSON cannot be read: " + clean(err.Error())}
	}
	if r.Format != Format {
		return Report{}, &NoDumpError{path, fmt.Sprintf("its format is %q, and this swdt reads %q", clean(r.Format), Format)}
	}
	if len(r.Nodes) > mostNodes {
		return Report{}, &NoDumpError{path, fmt.Sprintf("it has %d nodes", len(r.Nodes))}
	}
	redactor, err := redact.New(nil)
	if err != nil {
		return Report{}, err
	}
	r.Nodes = append([]Node{}, r.Nodes...)
	for i := range r.Nodes {
		if err := r.Nodes[i].tame(redactor); err != nil {
			return Report{}, &NoDumpError{path, err.Error()}
		}
		r.Nodes[i].Analyse()
	}
	return r, nil
}

// tame bounds and redacts a node of a document, and drops what Analyse computes.
func (n *Node) tame(redactor *redact.Redactor) error {
	text := func(s string) string { return clean(redactor.String(s)) }
	groups := 0
	for _, p := range n.Processes {
		groups += len(p.Groups)
	}
	if len(n.Processes) > mostProcesses || groups > mostGroups || len(n.Calls) > mostCalls || len(n.Probes) > mostCalls || len(n.Problems) > mostCalls {
		return errors.New("a node of it has more processes, goroutines or calls than a dump can have")
	}
	n.Name, n.Result, n.Error = text(n.Name), text(n.Result), text(n.Error)
	n.Calls, n.Probes, n.Processes = append([]Call{}, n.Calls...), append([]Probe{}, n.Probes...), append([]Process{}, n.Processes...)
	n.Problems = append([]string{}, n.Problems...)
	for i := range n.Problems {
		n.Problems[i] = text(n.Problems[i])
	}
	for i := range n.Calls {
		c := &n.Calls[i]
		c.Method, c.Subject, c.Pod = text(c.Method), text(c.Subject), text(c.Pod)
	}
	for i := range n.Probes {
		n.Probes[i].Name, n.Probes[i].Error = text(n.Probes[i].Name), text(n.Probes[i].Error)
	}
	for i := range n.Processes {
		p := &n.Processes[i]
		p.Kind, p.Version, p.ID, p.Pod = Kind(text(string(p.Kind))), text(p.Version), text(p.ID), text(p.Pod)
		p.Source, p.Error, p.Groups = text(p.Source), text(p.Error), append([]goroutines.Group{}, p.Groups...)
		for j := range p.Groups {
			tameGroup(&p.Groups[j], text)
		}
	}
	return nil
}

func tameGroup(g *goroutines.Group, text func(string) string) {
	g.State, g.CreatedBy = text(g.State), text(g.CreatedBy)
	g.Count, g.Minutes = max(g.Count, 1), max(g.Minutes, 0)
	g.IDs = append([]uint64{}, g.IDs[:min(len(g.IDs), goroutines.MostIDs)]...)
	g.Frames = append([]string{}, g.Frames[:min(len(g.Frames), mostFrames)]...)
	for i := range g.Frames {
		g.Frames[i] = text(g.Frames[i])
	}
}

// readText reads the goroutines of one program; of several dumps in a log, the last complete one. Its functions show which program it is.
func readText(path string, content []byte) (Report, error) {
	part := goroutines.Last(content)
	dump, err := goroutines.Parse(bytes.NewReader(part.Text))
	if err != nil {
		return Report{}, err
	}
	dump.Cut = dump.Cut || !part.Complete
	if len(dump.Goroutines) == 0 {
		return Report{}, &NoDumpError{path, "it has neither JSON nor goroutines"}
	}
	p := Process{Source: byFile}
	p.take(dump)
	p.Kind = kindOf(p.Groups)
	n := Node{Calls: []Call{}, Probes: []Probe{}, Processes: []Process{p}, Problems: []string{}}
	n.Name, n.Result = clean(path), "ok"
	switch {
	case !part.Complete:
		n.Problems = append(n.Problems, "the dump has no end")
	case part.Of > 1:
		n.Problems = append(n.Problems, fmt.Sprintf("the file has %d dumps: this is number %d, the last complete one", part.Of, part.Number))
	}
	n.Analyse()
	return Report{Format: Format, Nodes: []Node{n}}, nil
}

// take sets the goroutines of a process.
func (p *Process) take(dump goroutines.Dump) {
	p.Goroutines, p.Cut, p.Groups = len(dump.Goroutines), dump.Cut, dump.Groups()
	if len(p.Groups) > mostGroups {
		p.Groups, p.Cut = p.Groups[:mostGroups], true
	}
}

// kindOf returns the program that has goroutines of these groups; "" if it is none of the known ones.
func kindOf(groups []goroutines.Group) Kind {
	for _, by := range []struct {
		text string
		kind Kind
	}{
		{"cmd/containerd/command.", Containerd}, {"main.(*hcs", Shim}, {"main.(*service).", Shim}, {"containerd-shim", Shim},
		{"kubernetes/cmd/kube-proxy/", KubeProxy}, {"kubernetes/pkg/proxy/", KubeProxy}, {"kubernetes/cmd/kubelet/", Kubelet},
		{"kubernetes/pkg/kubelet", Kubelet}, {"containerd/containerd/", Containerd},
	} {
		for _, g := range groups {
			if has(g, by.text) || strings.Contains(g.CreatedBy, by.text) {
				return by.kind
			}
		}
	}
	return ""
}

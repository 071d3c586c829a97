package evidence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/format/redact/document"
	"github.com/swdt-dev/swdt/internal/proof/suite"
	"github.com/swdt-dev/swdt/internal/ui"
)

// bundle is the evidence of one failed result while it is made.
type bundle struct {
	*collection
	result     suite.Result
	window     window
	folder     string
	namespaces []*namespace
	nodes      []string // that are involved
	states     map[string]changes
	slices     []*slice
	missing    []string
	files      []string
}

// lacks records what the bundle lacks, and why.
func (b *bundle) lacks(format string, args ...any) {
	b.missing = append(b.missing, b.clean(short(fmt.Sprintf(format, args...))))
}

// clean returns a text redacted, and without what could control a terminal.
func (b *bundle) clean(text string) string { return ui.Printable(b.redactor.String(text)) }

// write writes the files of the bundle.
func (b *bundle) write() (Bundle, error) {
	if err := os.Mkdir(b.folder, 0o700); err != nil {
		return Bundle{}, err
	}
	if b.diagnosis.path != "" && len(b.nodes) > 0 {
		b.files = append(b.files, relative(b.folder, b.diagnosis.path))
	}
	b.lackDiagnosis()
	causes := b.causes()
	if err := b.writeAll(causes); err != nil {
		return Bundle{}, err
	}
	return Bundle{Run: b.run, Folder: relative(b.results, b.folder), Files: b.files, Causes: causes,
		Missing: append([]string{}, b.missing...)}, nil
}

// lackDiagnosis records why the diagnostics lack a node of this spec.
func (b *bundle) lackDiagnosis() {
	for _, text := range b.diagnosis.missing {
		if slices.ContainsFunc(b.nodes, func(name string) bool { return strings.Contains(text, name) }) ||
			strings.HasPrefix(text, "diagnostics of nodes: ") {
			b.lacks("%s", text)
		}
	}
}

func (b *bundle) writeAll(causes []string) error {
	if len(b.namespaces) > 0 {
		if err := b.writeCluster(); err != nil {
			return err
		}
	}
	for i, n := range b.namespaces {
		for j, p := range n.pods {
			if err := b.writeOutput(fmt.Sprintf("%d-%d-%s", i+1, j+1, slug(p.last.Name)), p); err != nil {
				return err
			}
		}
	}
	for i, s := range b.slices {
		if err := b.text(fmt.Sprintf("node-%d-%s.log", i+1, slug(s.node)), s.tail.write); err != nil {
			return err
		}
	}
	files := b.files
	b.files = append([]string{SummaryName}, files...)
	return b.text(SummaryName, func(w io.Writer) error { return b.summary(w, causes, files) }, alreadyListed)
}

// write writes the text, after a note about what is missing before it.
func (t *tail) write(w io.Writer) error {
	if t.dropped > 0 {
		if _, err := fmt.Fprintf(w, "… %d bytes before this are left out …\n", t.dropped); err != nil {
			return err
		}
	}
	_, err := w.Write(t.kept)
	return err
}

// writeOutput writes what the containers of a pod have printed.
func (b *bundle) writeOutput(name string, p *pod) error {
	for i, o := range p.outputs {
		text, dropped, failed := o.text()
		if failed != nil {
			b.lacks("output of container %s of pod %s: %v", o.container, p.last.Name, failed)
		}
		if text == "" {
			continue
		}
		t := tail{kept: []byte(text), dropped: dropped}
		if err := b.text(fmt.Sprintf("pod-%s-%d-%s.log", name, i+1, slug(o.container)), t.write); err != nil {
			return err
		}
	}
	return nil
}

// recorded are the objects of a namespace in the file of the cluster's objects.
type recorded struct {
	Name   string     `json:"name"`
	Pods   []poded    `json:"pods"`
	Events []event    `json:"events"`
	Seen   *time.Time `json:"seen"` // when the namespace appeared
}

type poded struct {
	States changes     `json:"states"`
	Pod    *corev1.Pod `json:"pod"` // before it was deleted
}

// clusterName is the name of the file with the objects of the cluster.
const clusterName = "cluster.json"

func (b *bundle) writeCluster() error {
	all := struct {
		Namespaces []recorded         `json:"namespaces"`
		Nodes      map[string]changes `json:"nodes"`
	}{[]recorded{}, map[string]changes{}}
	for _, n := range b.namespaces {
		r := recorded{Name: n.name, Pods: []poded{}, Events: n.sortedEvents(), Seen: &n.appeared}
		for _, p := range n.pods {
			r.Pods = append(r.Pods, poded{States: p.changes, Pod: p.last})
		}
		all.Namespaces = append(all.Namespaces, r)
	}
	for _, name := range b.nodes {
		all.Nodes[name] = b.states[name]
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	clean, _ := document.Redact(b.redactor, text)
	return b.file(clusterName, clean)
}

// listing is an option of text.
type listing int

// alreadyListed means that the file is in the list of files.
const alreadyListed listing = 1

// text writes a file of text, redacted and printable.
func (b *bundle) text(name string, fill func(io.Writer) error, listed ...listing) error {
	var buffer bytes.Buffer
	if err := fill(&buffer); err != nil {
		return err
	}
	content := []byte(ui.PrintableLines(string(b.redactor.Bytes(buffer.Bytes()))))
	if len(listed) > 0 {
		return b.put(name, content)
	}
	return b.file(name, content)
}

func (b *bundle) file(name string, content []byte) error {
	b.files = append(b.files, name)
	return b.put(name, content)
}

func (b *bundle) put(name string, content []byte) error {
	b.written += int64(len(content))
	return os.WriteFile(filepath.Join(b.folder, name), content, 0o600)
}

// summary writes what people read first.
func (b *bundle) summary(w io.Writer, causes, files []string) error {
	p := &lines{w: w}
	p.line("%s", b.result.Name)
	p.line("%s in run %d, from %s to %s", b.result.State, b.run, clock(b.window.begin), clock(b.window.end))
	p.line("%s", suite.Shortened(b.result.Message, 4<<10))
	p.section("Likely causes", causes)
	p.section("Missing", b.missing)
	p.section("Files", files)
	for _, name := range slices.Sorted(maps.Keys(b.states)) {
		if slices.Contains(b.nodes, name) {
			p.states("Node "+name, b.states[name])
		}
	}
	for _, n := range b.namespaces {
		for _, pod := range n.pods {
			p.states("Pod "+n.name+"/"+pod.last.Name, pod.changes)
		}
		var rows [][]string
		for _, e := range n.sortedEvents() {
			rows = append(rows, []string{clock(e.Time), e.Type, e.Reason, e.About, e.From, strconv.Itoa(e.Count), e.Message})
		}
		if len(rows) > 0 {
			p.line("\nEvents in %s", n.name)
			p.table([]string{"LAST", "TYPE", "REASON", "ABOUT", "FROM", "TIMES", "MESSAGE"}, rows)
		}
	}
	return p.err
}

// lines writes lines until one fails.
type lines struct {
	w   io.Writer
	err error
}

func (l *lines) line(format string, args ...any) {
	if l.err == nil {
		_, l.err = fmt.Fprintf(l.w, format+"\n", args...)
	}
}

func (l *lines) section(title string, texts []string) {
	if len(texts) > 0 {
		l.line("\n%s\n- %s", title, strings.Join(texts, "\n- "))
	}
}

func (l *lines) states(title string, all changes) {
	l.line("\n%s", title)
	for _, c := range all {
		l.line("%s  %s", clock(c.Time), c.State)
	}
}

func (l *lines) table(header []string, rows [][]string) {
	if l.err == nil {
		l.err = ui.Table(l.w, header, rows)
	}
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// maxSlug is the largest length of the part of a file's name that comes from a text, in bytes.
const maxSlug = 60

// slug returns a part of a file's name for a text: lower-case letters of ASCII, digits and dashes.
func slug(text string) string {
	var s strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			s.WriteRune(r)
		case s.Len() > 0 && !strings.HasSuffix(s.String(), "-"):
			s.WriteByte('-')
		}
		if s.Len() >= maxSlug {
			break
		}
	}
	return strings.Trim(s.String(), "-")
}

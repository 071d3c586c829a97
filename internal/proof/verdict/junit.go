package verdict

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/swdt-dev/swdt/internal/proof/junit"
)

// WriteJUnit writes the report as JUnit XML, with a test case for each spec. A flaky spec has a failure
// of the type flaky, a spec that was not run has an error.
func (r Report) WriteJUnit(w io.Writer) error {
	s := junit.Suite{Name: "swdt e2e", Begin: r.Begin, Seconds: r.Seconds,
		Properties: []junit.Property{{Name: "cluster", Value: r.Cluster}, {Name: "kubernetes", Value: r.Kubernetes},
			{Name: "e2e.test", Value: r.Binary.Version}, {Name: "runs", Value: fmt.Sprint(r.Runs)},
			{Name: "result", Value: r.Result}, {Name: "error", Value: r.Error}}}
	for _, spec := range r.Specs {
		s.Cases = append(s.Cases, spec.junit())
	}
	return junit.Write(w, s)
}

func (s Spec) junit() junit.Case {
	c := junit.Case{Name: s.Name, Class: cmp.Or(s.Sig(), "e2e"), File: s.File, Seconds: s.Seconds.Median,
		Output: s.Output + s.attachments()}
	message := &junit.Message{Type: string(s.Verdict), Message: firstLine(s.Message), Text: s.Message}
	switch s.Verdict {
	case Failed:
		c.Failure = message
	case Flaky:
		message.Message = s.Words() + ": " + message.Message
		c.Failure = message
	case Skipped:
		c.Skipped = &junit.Message{Message: s.Message}
	case NotRun:
		c.Error = message
	}
	return c
}

// attachments names the files of the evidence in the form that CI systems turn into links, and the likely
// causes.
func (s Spec) attachments() string {
	var text strings.Builder
	for _, e := range s.Evidence {
		fmt.Fprintf(&text, "\nevidence of run %d:\n", e.Run)
		for _, cause := range e.Causes {
			text.WriteString("- " + cause + "\n")
		}
		for _, file := range e.Files {
			text.WriteString("[[ATTACHMENT|" + path.Join(e.Folder, file) + "]]\n")
		}
	}
	return text.String()
}

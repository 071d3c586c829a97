package verdict

import (
	"encoding/xml"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
)

// The elements of JUnit's XML, as CI systems read it.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Timestamp  string          `xml:"timestamp,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr,omitempty"`
		Time    string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure"`
		Error   *junitMessage `xml:"error"`
		Skipped *junitMessage `xml:"skipped"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Type    string `xml:"type,attr,omitempty"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the report as JUnit XML, with a test case for each spec. A flaky spec has a failure
// of the type flaky, a spec that was not run has an error.
func (r Report) WriteJUnit(w io.Writer) error {
	s := junitSuite{
		Name: "swdt e2e", Tests: r.Summary.Total(), Failures: r.Summary.Failed + r.Summary.Flaky,
		Errors: r.Summary.NotRun, Skipped: r.Summary.Skipped, Time: fmt.Sprintf("%.3f", r.Seconds),
		Timestamp: r.Begin.UTC().Format(time.RFC3339),
		Properties: []junitProperty{{"cluster", r.Cluster}, {"kubernetes", r.Kubernetes}, {"e2e.test", r.Binary.Version},
			{"runs", fmt.Sprint(r.Runs)}, {"result", r.Result}, {"error", r.Error}},
	}
	for _, spec := range r.Specs {
		s.Cases = append(s.Cases, spec.junit())
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(junitSuites{Suites: []junitSuite{s}}); err != nil {
		return fmt.Errorf("write JUnit XML: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s Spec) junit() junitCase {
	c := junitCase{Name: s.Name, Class: s.Sig(), File: s.File, Time: fmt.Sprintf("%.3f", s.Seconds.Median),
		Output: s.Output + s.attachments()}
	if c.Class == "" {
		c.Class = "e2e"
	}
	message := &junitMessage{Type: string(s.Verdict), Message: firstLine(s.Message), Text: s.Message}
	switch s.Verdict {
	case Failed:
		c.Failure = message
	case Flaky:
		message.Message = s.Words() + ": " + message.Message
		c.Failure = message
	case Skipped:
		c.Skipped = &junitMessage{Message: s.Message}
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

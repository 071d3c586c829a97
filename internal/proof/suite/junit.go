package suite

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// junitCase is a test of a JUnit file, as reporters.JUnitTestCase of Ginkgo 2 writes it
// (https://github.com/onsi/ginkgo/blob/v2.22.0/reporters/junit_report.go). Ginkgo 1 wrote no status.
type junitCase struct {
	Name    string       `xml:"name,attr"`
	Status  string       `xml:"status,attr"`
	Seconds float64      `xml:"time,attr"`
	Failure *junitReason `xml:"failure"`
	Error   *junitReason `xml:"error"`
	Skipped *junitReason `xml:"skipped"`
}

type junitReason struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// junitParser reads a JUnit file test by test, since the output of all specs may not fit into memory.
type junitParser struct {
	report Report
	specs  int
}

// ReadJUnit reads a JUnit file of Ginkgo. The file of an interrupted run is read as far as it goes: its last reason then
// says so, and Unreached has the specs that the run did not reach. The errors are *ReportErrors, which contain name.
func ReadJUnit(r io.Reader, name string) (Report, error) {
	bounded := &io.LimitedReader{R: r, N: maxReport}
	decoder := xml.NewDecoder(bounded)
	decoder.Strict = false // the output of specs may have bytes that XML does not have
	p := &junitParser{}
	err := p.read(decoder)
	var tooMany *tooManyError
	switch {
	case bounded.N == 0:
		return Report{}, &ReportError{Name: name, What: fmt.Sprintf("has more than %d bytes", maxReport)}
	case errors.As(err, &tooMany), err != nil && p.specs == 0:
		return Report{}, &ReportError{Name: name, What: "is not a JUnit file of Ginkgo", Err: err}
	case p.specs == 0:
		return Report{}, &ReportError{Name: name, What: "has no tests"}
	case err != nil:
		p.report.Reasons = append(p.report.Reasons, "the file ends early: "+err.Error())
		p.report.Cut = true
	}
	p.report.Total = p.specs
	if len(p.report.Reasons) == 0 { // filters left these out
		p.report.Unreached = nil
	}
	return p.report, nil
}

// tooManyError reports a file beyond the bounds.
type tooManyError struct{ what string }

func (e *tooManyError) Error() string { return e.what }

func (p *junitParser) read(decoder *xml.Decoder) error {
	for depth := 0; ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			if depth > 0 {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.EndElement:
			depth--
		case xml.StartElement:
			switch token.Name.Local {
			case "testsuites", "testsuite", "properties":
				depth++
				continue
			case "property":
				p.property(token.Attr)
				err = decoder.Skip()
			case "testcase":
				var c junitCase
				if err = decoder.DecodeElement(&c, &token); err == nil {
					err = p.add(c)
				}
			default:
				err = decoder.Skip()
			}
			if err != nil {
				return err
			}
		}
	}
}

// property keeps the reasons why the suite failed as a whole, such as an interruption.
func (p *junitParser) property(attributes []xml.Attr) {
	var name, value string
	for _, a := range attributes {
		switch a.Name.Local {
		case "name":
			name = a.Value
		case "value":
			value = a.Value
		}
	}
	if name == "SpecialSuiteFailureReason" && value != "" {
		p.report.Reasons = append(p.report.Reasons, Shortened(value, maxName))
	}
}

func (p *junitParser) add(c junitCase) error {
	if p.specs++; p.specs > maxSpecs {
		return &tooManyError{fmt.Sprintf("it has more than %d specs", maxSpecs)}
	}
	leaf, name := "It", c.Name
	if rest, ok := strings.CutPrefix(c.Name, "["); ok {
		if node, text, closed := strings.Cut(rest, "]"); closed && isNode(node) {
			leaf, name = node, strings.TrimSpace(text)
		}
	}
	if len(name) > maxName {
		return &tooManyError{fmt.Sprintf("the name of a spec has more than %d bytes", maxName)}
	}
	result := c.result(name)
	switch {
	case leaf != "It":
		if result.Outcome == Failed || result.Outcome == NotRun {
			result.Name = strings.TrimSpace("[" + leaf + "] " + name)
			p.report.Suite = append(p.report.Suite, result)
		}
	case result.Outcome == Skipped && (c.Skipped == nil || !strings.HasPrefix(c.Skipped.Message, "skipped - ")):
		p.report.Filtered++
		p.report.Unreached = append(p.report.Unreached, result.Spec)
	default:
		p.report.Results = append(p.report.Results, result)
	}
	return nil
}

// isNode reports whether a word in front of a name is Ginkgo's name of a node, and not a label such as sig-windows.
func isNode(word string) bool {
	switch word {
	case "It", "BeforeSuite", "AfterSuite", "SynchronizedBeforeSuite", "SynchronizedAfterSuite", "ReportBeforeSuite",
		"ReportAfterSuite", "DeferCleanup (Suite)":
		return true
	}
	return false
}

func (c junitCase) result(name string) Result {
	r := Result{Spec: Spec{Name: name, Labels: []string{}}, State: c.Status, Seconds: max(0, c.Seconds)}
	reason := c.Failure
	if reason == nil {
		reason = c.Error
	}
	switch {
	case reason != nil:
		r.Outcome, r.Message = Failed, Shortened(strings.TrimSpace(reason.Message+"\n"+reason.Text), maxText)
		if r.State == "" {
			r.State = reason.Type
		}
		if r.State == "interrupted" { // the run ended in it, which proves nothing
			r.Outcome = NotRun
		}
	case c.Skipped != nil, c.Status == "skipped", c.Status == "pending":
		r.Outcome = Skipped
		if c.Skipped != nil {
			r.Message = Shortened(strings.TrimPrefix(c.Skipped.Message, "skipped - "), maxText)
		}
	case c.Status == "" || c.Status == "passed":
		r.Outcome = Passed
	default:
		r.Outcome, r.Message = Failed, c.Status
	}
	return r
}

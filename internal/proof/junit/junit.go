// Package junit writes results as JUnit XML, as CI systems read it.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"
)

// Suite is the result of a run.
type Suite struct {
	Name       string
	Begin      time.Time
	Seconds    float64
	Properties []Property
	Cases      []Case
}

// Property is a fact about a run.
type Property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

// Case is the result of a test. At most one of Failure, Error and Skipped is not nil; a test that has none of
// them passed.
type Case struct {
	Name, Class string
	File        string // the file with the test's source; "" if it is not known
	Seconds     float64
	Failure     *Message // the product failed
	Error       *Message // the test was not run to its end
	Skipped     *Message
	Output      string
}

// Message is the cause of a result. Text may have several lines.
type Message struct {
	Type    string `xml:"type,attr,omitempty"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

type (
	suites struct {
		XMLName xml.Name `xml:"testsuites"`
		Suites  []suite  `xml:"testsuite"`
	}
	suite struct {
		Name       string     `xml:"name,attr"`
		Tests      int        `xml:"tests,attr"`
		Failures   int        `xml:"failures,attr"`
		Errors     int        `xml:"errors,attr"`
		Skipped    int        `xml:"skipped,attr"`
		Time       string     `xml:"time,attr"`
		Timestamp  string     `xml:"timestamp,attr"`
		Properties []Property `xml:"properties>property"`
		Cases      []testCase `xml:"testcase"`
	}
	testCase struct {
		Name    string   `xml:"name,attr"`
		Class   string   `xml:"classname,attr"`
		File    string   `xml:"file,attr,omitempty"`
		Time    string   `xml:"time,attr"`
		Failure *Message `xml:"failure"`
		Error   *Message `xml:"error"`
		Skipped *Message `xml:"skipped"`
		Output  string   `xml:"system-out,omitempty"`
	}
)

// Write writes a suite. Characters that XML does not have become U+FFFD.
func Write(w io.Writer, s Suite) error {
	out := suite{Name: s.Name, Tests: len(s.Cases), Time: seconds(s.Seconds), Properties: s.Properties,
		Timestamp: s.Begin.UTC().Format(time.RFC3339)}
	for _, c := range s.Cases {
		switch {
		case c.Failure != nil:
			out.Failures++
		case c.Error != nil:
			out.Errors++
		case c.Skipped != nil:
			out.Skipped++
		}
		out.Cases = append(out.Cases, testCase{Name: c.Name, Class: c.Class, File: c.File, Time: seconds(c.Seconds),
			Failure: c.Failure, Error: c.Error, Skipped: c.Skipped, Output: c.Output})
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(suites{Suites: []suite{out}}); err != nil {
		return fmt.Errorf("write JUnit XML: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }

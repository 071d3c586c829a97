package lint

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// The formats for other programs, beside JSON and YAML.
const (
	SARIF  = "sarif"  // Static Analysis Results Interchange Format 2.1.0, for code scanning
	GitHub = "github" // commands of GitHub Actions, which annotate lines of a pull request
	JUnit  = "junit"  // a test report, in which each file is a test
)

// Write writes the report in one of these formats.
func (r Report) Write(w io.Writer, format string) error {
	switch format {
	case SARIF:
		return r.writeSARIF(w)
	case GitHub:
		return r.writeGitHub(w)
	}
	return r.writeJUnit(w)
}

type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string     `json:"id"`
		ShortDescription sarifText  `json:"shortDescription"`
		FullDescription  sarifText  `json:"fullDescription"`
		Help             sarifText  `json:"help"`
		HelpURI          string     `json:"helpUri"`
		Default          sarifLevel `json:"defaultConfiguration"`
	}
	sarifLevel struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		Notifications []sarifNotification `json:"toolExecutionNotifications"`
	}
	sarifNotification struct {
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Suppressions []sarifSuppression `json:"suppressions"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region *sarifRegion `json:"region,omitempty"`
	}
	sarifRegion struct {
		Line   int `json:"startLine"`
		Column int `json:"startColumn"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
)

func (r Report) writeSARIF(w io.Writer) error {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "swdt lint", InformationURI: "https://github.com/swdt-dev/swdt"}
	indices := map[string]int{}
	for i, rule := range Rules() {
		indices[rule.ID] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ID: rule.ID, ShortDescription: sarifText{rule.Title},
			FullDescription: sarifText{rule.Means}, Help: sarifText{rule.Remedy}, HelpURI: rule.Source, Default: sarifLevel{level(rule.Severity)}})
	}
	for _, f := range r.Findings {
		at := sarifAt(f.File, f.Line, f.Column)
		if f.Object != "" {
			at.Logical = []sarifLogical{{strings.TrimSpace(f.Object + " " + f.Field)}}
		}
		one := sarifResult{RuleID: f.Rule, RuleIndex: indices[f.Rule], Level: level(f.Severity), Message: sarifText{f.What + ". " + capital(f.Remedy) + "."},
			Locations: []sarifLocation{at}, Suppressions: []sarifSuppression{}}
		if f.Ignored != "" {
			one.Suppressions = append(one.Suppressions, sarifSuppression{"inSource", f.Ignored})
		}
		run.Results = append(run.Results, one)
	}
	notifications := []sarifNotification{}
	for _, u := range r.Unread {
		notifications = append(notifications, sarifNotification{"warning", sarifText{u.Why}, []sarifLocation{sarifAt(u.File, u.Line, 1)}})
	}
	run.Invocations = []sarifInvocation{{true, notifications}}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

// level returns the word of SARIF for a severity.
func level(s finding.Severity) string {
	if s == finding.Info {
		return "note"
	}
	return string(s)
}

func capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func sarifAt(file string, line, column int) (at sarifLocation) {
	at.Physical.Artifact.URI = (&url.URL{Path: file}).String()
	if line > 0 {
		at.Physical.Region = &sarifRegion{line, column}
	}
	return at
}

// writeGitHub writes a command for each finding that counts: ::error file=F,line=N,col=N,title=T::TEXT.
func (r Report) writeGitHub(w io.Writer) error {
	for _, f := range r.Findings {
		if f.Ignored != "" {
			continue
		}
		word := string(f.Severity)
		if f.Severity == finding.Info {
			word = "notice"
		}
		if _, err := fmt.Fprintf(w, "::%s file=%s,line=%d,col=%d,title=%s::%s\n", word, property(f.File), f.Line, f.Column,
			property("swdt lint: "+f.Rule), message(f.sentences())); err != nil {
			return err
		}
	}
	for _, u := range r.Unread {
		if _, err := fmt.Fprintf(w, "::warning file=%s,line=%d,title=swdt lint::%s\n", property(u.File), max(1, u.Line), message("not read: "+u.Why)); err != nil {
			return err
		}
	}
	return nil
}

// sentences returns a finding with its field and its remedy.
func (f Finding) sentences() string {
	what := f.What
	if f.Field != "" {
		what += " (" + f.Field + ")"
	}
	return what + ". " + capital(f.Remedy) + "."
}

// message escapes the text of a command of GitHub Actions, property the value of a property.
func message(text string) string { return strings.ReplaceAll(ui.Printable(text), "%", "%25") }

func property(text string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(message(text))
}

type (
	junitSuites struct {
		XMLName xml.Name   `xml:"testsuites"`
		Suite   junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name     string         `xml:"name,attr"`
		Class    string         `xml:"classname,attr"`
		Skipped  *junitSkipped  `xml:"skipped"`
		Failures []junitFailure `xml:"failure"`
		Output   string         `xml:"system-out,omitempty"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
	junitFailure struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes a test for each file with findings. Errors and warnings are its failures, notes its output. A file of
// which nothing else is known than that it was not read is a test that was skipped.
func (r Report) writeJUnit(w io.Writer) error {
	suite := junitSuite{Name: "swdt lint"}
	indices := map[string]int{}
	test := func(file string) *junitCase {
		i, ok := indices[file]
		if !ok {
			i = len(suite.Cases)
			indices[file] = i
			suite.Cases = append(suite.Cases, junitCase{Name: ui.Printable(file), Class: "swdt lint"})
		}
		return &suite.Cases[i]
	}
	for _, f := range r.Findings {
		if f.Ignored != "" {
			continue
		}
		one := test(f.File)
		if f.Severity == finding.Info {
			one.Output += ui.Printable(f.place()+": "+f.What) + "\n"
			continue
		}
		suite.Failures++
		one.Failures = append(one.Failures, junitFailure{Type: f.Rule, Message: ui.Printable(f.What),
			Text: ui.Printable(f.place()) + "\n" + ui.Printable(f.Remedy) + "\n"})
	}
	for _, u := range r.Unread {
		why := ui.Printable("not read: " + u.Why)
		if _, known := indices[u.File]; known {
			test(u.File).Output += why + "\n"
			continue
		}
		test(u.File).Skipped = &junitSkipped{why}
		suite.Skipped++
	}
	if len(suite.Cases) == 0 {
		suite.Cases = append(suite.Cases, junitCase{Name: "all files", Class: "swdt lint"})
	}
	suite.Tests = len(suite.Cases)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(junitSuites{Suite: suite}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

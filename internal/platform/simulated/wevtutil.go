package simulated

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/swdt-dev/swdt/internal/platform"
)

// LoggedEvent is an entry of the machine's event log.
type LoggedEvent struct {
	Channel  string // System
	Provider string
	ID       int
	Level    int       // Windows's: 1 critical, 2 error, 3 warning, 4 information
	Time     time.Time // zero: now
	Message  string    // empty: the provider has no text for the event
	Data     []string

	record int
}

// eventChannels returns the names of a few of the hundreds of event channels that a Windows has.
func eventChannels() []string {
	return []string{
		"Application", "Security", "Setup", "System",
		"Microsoft-Windows-Host-Network-Service-Admin", "Microsoft-Windows-Host-Network-Service-Operational",
		"Microsoft-Windows-Hyper-V-Compute-Admin", "Microsoft-Windows-Hyper-V-Compute-Analytic",
		"Microsoft-Windows-Hyper-V-Compute-Operational",
		"Microsoft-Windows-Hyper-V-VmSwitch-Operational",
	}
}

// LogEvent adds to the event log.
func (m *Machine) LogEvent(e LoggedEvent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.logEvent(e)
}

func (m *Machine) logEvent(e LoggedEvent) {
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	for _, other := range m.events {
		if other.Channel == e.Channel {
			e.record = max(e.record, other.record)
		}
	}
	e.record++
	m.events = keepLast(append(m.events, e))
}

// logServiceInstalled logs the Service Control Manager's event 7045 about a new service, with the text that Windows has
// for it; the names of its data (ServiceName, ImagePath…) are left out. The caller holds the lock.
func (m *Machine) logServiceInstalled(c platform.ServiceConfig) {
	start := map[platform.StartType]string{platform.StartAuto: "auto start", platform.StartManual: "demand start",
		platform.StartDisabled: "disabled"}[c.StartType]
	m.logEvent(LoggedEvent{
		Channel: "System", Provider: "Service Control Manager", ID: 7045, Level: 4,
		Data: []string{c.DisplayName, c.CommandLine, "user mode service", start, c.Account},
		Message: "A service was installed in the system.\r\n\r\nService Name:  " + c.DisplayName +
			"\r\nService File Name:  " + c.CommandLine + "\r\nService Type:  user mode service\r\nService Start Type:  " +
			start + "\r\nService Account:  " + c.Account,
	})
}

// logServiceCrash logs the Service Control Manager's event about a service whose process ended unexpectedly: 7034, and
// 7031 if it will be restarted ("Event ID 7031 — Service Stop Operations" on TechNet). Both name the service by its
// display name, and count from the boot on. The caller holds the lock.
func (m *Machine) logServiceCrash(service string) {
	s, err := m.service(service)
	if err != nil {
		return
	}
	s.crashes++
	e := LoggedEvent{
		Channel: "System", Provider: "Service Control Manager", ID: 7034, Level: 2,
		Data: []string{s.config.DisplayName, strconv.Itoa(s.crashes)},
		Message: fmt.Sprintf("The %s service terminated unexpectedly.  It has done this %d time(s).",
			s.config.DisplayName, s.crashes),
	}
	failures := s.failures
	if r := s.config.Recovery; r != nil && !s.deleting && !r.Reboots {
		if delay, restarts := failures.Failed(*r, time.Now()); restarts {
			const restart = "Restart the service"
			milliseconds := strconv.FormatInt(delay.Milliseconds(), 10)
			e.ID, e.Data = 7031, append(e.Data, milliseconds, "1", restart)
			e.Message += "  The following corrective action will be taken in " + milliseconds + " milliseconds: " + restart + "."
		}
	}
	m.logEvent(e)
}

// wevtutilMain imitates wevtutil.exe ("wevtutil" on learn.microsoft.com; its exit codes are Win32 errors: 15007 is
// ERROR_EVT_CHANNEL_NOT_FOUND, 15001 ERROR_EVT_INVALID_QUERY) with el (list channels), qe (query events), epl (export
// events to a file) and cl (clear a channel).
func wevtutilMain(_ context.Context, p *Process) int {
	if len(p.Args) == 1 && p.Args[0] == "el" {
		fmt.Fprint(p.Stdout, strings.Join(eventChannels(), "\r\n")+"\r\n")
		return 0
	}
	if len(p.Args) == 2 && p.Args[0] == "cl" {
		return p.clearEvents(p.Args[1])
	}
	if len(p.Args) < 2 || p.Args[0] != "qe" && p.Args[0] != "epl" {
		fmt.Fprint(p.Stderr, "Windows Events Command Line Utility: invalid command.\r\n")
		return 87
	}
	if !slices.Contains(eventChannels(), p.Args[1]) {
		fmt.Fprint(p.Stderr, "Failed to read events. The specified channel could not be found.\r\n")
		return 15007
	}
	flags := map[string]string{}
	for _, arg := range p.Args[2:] {
		name, value, _ := strings.Cut(arg, ":")
		flags[name] = value
	}
	condition, ok := readCondition(flags["/q"])
	if !ok {
		fmt.Fprint(p.Stderr, "The specified query is invalid.\r\n")
		return 15001
	}
	p.p.m.mu.Lock()
	events := slices.Clone(p.p.m.events)
	p.p.m.mu.Unlock()
	events = slices.DeleteFunc(events, func(e LoggedEvent) bool { return e.Channel != p.Args[1] || !condition(e) })
	if flags["/rd"] == "true" {
		slices.Reverse(events)
	}
	if most, err := strconv.Atoi(flags["/c"]); err == nil {
		events = events[:min(most, len(events))]
	}
	var out strings.Builder
	for _, e := range events {
		out.WriteString(e.xml(p.p.m.options.Hostname) + "\r\n")
	}
	if p.Args[0] == "epl" {
		return exportEvents(p, out.String())
	}
	if flags["/uni"] != "true" {
		fmt.Fprint(p.Stdout, out.String())
		return 0
	}
	wide := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(out.String())) {
		wide = append(wide, byte(unit), byte(unit>>8))
	}
	_, _ = p.Stdout.Write(wide)
	return 0
}

// exportEvents writes a file that begins like an .evtx ("ElfFile", [MS-EVEN6] and libyal/libevtx). The rest is not
// Windows' binary form.
func exportEvents(p *Process, records string) int {
	if len(p.Args) < 3 {
		fmt.Fprint(p.Stderr, "Too few arguments.\r\n")
		return 87
	}
	file, err := p.Platform.Files.Create(p.Args[2], platform.CreateTruncate)
	if err == nil {
		_, err = file.Write([]byte("ElfFile\x00" + records))
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		fmt.Fprintf(p.Stderr, "Failed to export log. %v\r\n", err)
		return 1
	}
	return 0
}

// readCondition parses swdt's queries: conditions on the ID, level, time and record number of an
// event. All conditions that "and" joins must hold, and at least one of those that "or" joins.
func readCondition(query string) (func(LoggedEvent) bool, bool) {
	if query == "" {
		return func(LoggedEvent) bool { return true }, true
	}
	inner, ok := strings.CutPrefix(query, "*[System[")
	inner, closed := strings.CutSuffix(inner, "]]")
	if !ok || !closed {
		return nil, false
	}
	comparison := regexp.MustCompile(`^(EventID|Level|EventRecordID|@SystemTime)(=|>=|<=|>)'?([^' ]+?)'?$`)
	inner = strings.NewReplacer("TimeCreated[", "", "]", "").Replace(inner)
	// "If the XPath expression is a compound expression that contains more than 20 expressions […] then you must use a
	// structured XML query" (learn.microsoft.com, "Consuming Events"). The answer to a longer one is ERROR_EVT_INVALID_QUERY
	// (elastic/beats#1491).
	if len(regexp.MustCompile(`[=<>]+`).FindAllString(inner, -1)) > 20 {
		return nil, false
	}
	var all [][][]string
	for part := range strings.SplitSeq(inner, " and ") {
		var any [][]string
		for one := range strings.SplitSeq(strings.Trim(part, "()"), " or ") {
			match := comparison.FindStringSubmatch(one)
			if match == nil {
				return nil, false
			}
			any = append(any, match[1:])
		}
		all = append(all, any)
	}
	return func(e LoggedEvent) bool {
		for _, any := range all {
			if !slices.ContainsFunc(any, func(c []string) bool { return e.holds(c[0], c[1], c[2]) }) {
				return false
			}
		}
		return true
	}, true
}

func (e LoggedEvent) holds(field, operator, value string) bool {
	var difference int
	if field == "@SystemTime" {
		then, err := time.Parse(time.RFC3339Nano, value)
		if err != nil {
			return false
		}
		difference = e.Time.Compare(then)
	} else {
		wanted, err := strconv.Atoi(value)
		if err != nil {
			return false
		}
		difference = map[string]int{"EventID": e.ID, "Level": e.Level, "EventRecordID": e.record}[field] - wanted
	}
	switch operator {
	case "=":
		return difference == 0
	case ">=":
		return difference >= 0
	case "<=":
		return difference <= 0
	}
	return difference > 0
}

// xml returns the event as /f:RenderedXml prints it: the event schema, "Event Schema Elements" on learn.microsoft.com.
func (e LoggedEvent) xml(computer string) string {
	escape := func(text string) string {
		var b strings.Builder
		_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
		return b.String()
	}
	var data strings.Builder
	for i, value := range e.Data {
		fmt.Fprintf(&data, "<Data Name='param%d'>%s</Data>", i+1, escape(value))
	}
	message := ""
	if e.Message != "" {
		message = "<Message>" + escape(e.Message) + "</Message>"
	}
	return fmt.Sprintf("<Event xmlns='http://schemas.microsoft.com/win/2004/08/events/event'><System><Provider "+
		"Name='%s'/>"+
		"<EventID Qualifiers='49152'>%d</EventID><Version>0</Version><Level>%d</Level><TimeCreated SystemTime='%s'/>"+
		"<EventRecordID>%d</EventRecordID><Execution ProcessID='716' "+
		"ThreadID='4208'/><Channel>%s</Channel><Computer>%s</Computer></System>"+
		"<EventData>%s</EventData><RenderingInfo Culture='en-US'>%s</RenderingInfo></Event>",
		escape(e.Provider), e.ID, e.Level, e.Time.UTC().Format("2006-01-02T15:04:05.0000000Z"), e.record,
		escape(e.Channel), escape(computer),
		data.String(), message)
}

package logs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/format/logline"
	"github.com/swdt-dev/swdt/internal/inspect/logs"
)

// today returns a text with a time of today in place of each {+01:20:00}, in RFC 3339 and UTC, and of each
// {I+01:20:00}, in klog's form. The times are counted from two hours ago.
func today(text string) (string, time.Time) {
	base := time.Now().UTC().Truncate(time.Second).Add(-2 * time.Hour)
	var all strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "{")
		inside, after, _ := strings.Cut(rest, "}")
		level, clock, isTime := strings.Cut(inside, "+")
		if !ok {
			return all.String() + text, base
		}
		all.WriteString(before)
		if !isTime || len(level) > 2 || len(clock) != len("00:00:00") {
			all.WriteString("{")
			text = rest
			continue
		}
		var hour, minute, second int
		fmt.Sscanf(clock, "%d:%d:%d", &hour, &minute, &second)
		at := base.Add(time.Duration(hour*3600+minute*60+second) * time.Second)
		switch level {
		case "":
			all.WriteString(at.Format(time.RFC3339))
		case "go":
			all.WriteString(at.Format("2006/01/02 15:04:05"))
		case "sp":
			all.WriteString(at.Format("2006-01-02 15:04:05"))
		default:
			all.WriteString(level + at.Format("0102 15:04:05.000000"))
		}
		text = after
	}
}

// Logs as public reports show them, in which a date or a level is elsewhere than swdt once looked.
func TestLogsOfReports(t *testing.T) {
	const path = `C:\logs\a.log`
	for name, c := range map[string]struct {
		log   string
		o     logs.Options // Since and Until count from the base of today, by sinceAfter and untilAfter
		since time.Duration
		until time.Duration
		want  []string // a part of each line
	}{
		"dates of a certificate": {
			log: "{I+00:20:00}    1234 x.go:1] \"rotated certificate\"\n  Not Before: {+00:00:00}\n" +
				"  Not After : 2099-11-29T01:00:00Z\n{I+00:25:00}    1234 x.go:1] \"after 1\"\n" +
				"{E+00:26:00}    1234 x.go:1] \"after 2\"\n",
			until: 30 * time.Minute,
			want:  []string{"rotated", "Not Before", "Not After", "after 1", "after 2"},
		},
		"JSON whose time is last": {
			log: `{"level":"info","msg":"starting containerd","time":"{+00:40:00}"}` + "\n" +
				`{"error":"` + strings.Repeat("failed to create shim task: ", 9) + `","level":"error","msg":"RunPodSandbox for ` +
				`&PodSandboxMetadata{Name:web-0,Namespace:default,Attempt:0,} failed","time":"{+00:50:30}"}` + "\n" +
				`{"error":"rpc error","level":"error","msg":"StopPodSandbox for \"a\" failed","time":"{+00:58:30}"}` + "\n",
			since: 57 * time.Minute, o: logs.Options{Level: logline.Error}, want: []string{"StopPodSandbox"},
		},
		"a panic": {
			log: "{I+00:50:01}    1234 proxier.go:1170] \"Hns LoadBalancer resource created\"\n" +
				"panic: runtime error: invalid memory address or nil pointer dereference\n" +
				"[signal 0xc0000005 code=0x0 addr=0x18 pc=0x1c2f6b1]\n\ngoroutine 88 [running]:\n" +
				"main.(*Proxier).syncProxyRules(0xc0000cd500)\n\t/build/proxier.go:1495 +0x9dc\n" +
				"{I+00:51:00}    4321 server.go:497] \"Golang settings\"\n",
			o:    logs.Options{Level: logline.Error},
			want: []string{"panic: ", "[signal", "", "goroutine 88", "syncProxyRules", "proxier.go:1495"},
		},
		"a line of a panic's trace, by its text": {
			log: "{I+00:50:01}    1234 proxier.go:1170] \"Hns LoadBalancer resource created\"\n" +
				"panic: runtime error\n\ngoroutine 88 [running]:\n\t/build/proxier.go:1495 +0x9dc\n" +
				"{I+00:51:00}    4321 server.go:497] \"Golang settings\"\n\t/build/proxier.go:1495 +0x9dc\n",
			since: 50 * time.Minute,
			o:     logs.Options{Level: logline.Fatal, Grep: pattern(t, "1495")}, want: []string{"proxier.go:1495"},
		},
		"levels of many programs": {
			log: "{+00:50:00}\tINFO\tcontroller.windowsmachine\treconciling\n" +
				"{+00:50:01}\tERROR\tcontroller.windowsmachine\tReconciler error\t{\"error\": \"x\"}\n" +
				"{sp+00:50:00}.123 1234 DEBUG cloudbaseinit.init [-] Initializing\n" +
				"{sp+00:50:01}.123 1234 ERROR cloudbaseinit.init [-] Plugin failed\n" +
				"{sp+00:50:02},123 ERROR - Child process ended with 1\n" +
				"INFO[{+00:50:03}] started\nERRO[{+00:50:04}] failed\n" +
				"kube-proxy.exe : {E+00:50:05}    3560 x.go:59] failed\n",
			o:    logs.Options{Level: logline.Error},
			want: []string{"\tERROR", "1234 ERROR", ",123 ERROR", "ERRO[", "kube-proxy.exe : E"},
		},
		"Go's package log": {
			log: "{go+00:01:58} [3456] [cni-net] Plugin azure-vnet version v1.4.22.\n" +
				`{"level":"info","ts":"{+00:20:00}","msg":"Plugin started","pid":11200}` + "\n" +
				"{go+00:20:01} [11200] [net] Restored state\n" +
				"{go+00:49:32} [4640] Formatted Boot time: 2025-11-28 23:14:13\n",
			since: 45 * time.Minute, want: []string{"Formatted Boot time"},
		},
		"a run of NUL": {
			log:   "{I+00:10:00}    1 x.go:1] \"torn" + strings.Repeat("\x00", 300_000) + "{E+00:50:00}    1 x.go:1] \"next\"\n",
			since: 45 * time.Minute, o: logs.Options{Level: logline.Error}, want: []string{"next"},
		},
		"a message that is cut": {
			log: "{I+00:10:00}    1 x.go:1] \"" + strings.Repeat("x", 1<<20) + " {E+00:20:00}    1 x.go:1] \"\n" +
				strings.Repeat("y", 1<<20+1) + "{E+00:20:00}    1 x.go:1] \"\n{E+00:50:00}    1 x.go:1] \"next\"\n",
			since: 15 * time.Minute, want: []string{"next"},
		},
		"a container's panic": {
			log: "{+00:50:00} stderr F I1129 01:50:00.000000 1 x.go:1] fine\n{+00:50:01} stdout F ERROR: one\n" +
				"{+00:50:02} stdout F hello\n{+00:50:02} stderr F panic: dead\n{+00:50:02} stderr F \n" +
				"{+00:50:02} stderr F goroutine 1 [running]:\n{+00:50:02} stdout F {\"at\":\"2019-05-01T10:00:00Z\"}\n",
			o: logs.Options{Level: logline.Error}, want: []string{"ERROR: one", "panic", "", "goroutine 1"},
		},
	} {
		n := startNode(t)
		log, base := today(c.log)
		n.Put(path, []byte(log))
		c.o.Sources, c.o.Tail = []string{"file:" + path}, -1
		if c.since != 0 {
			c.o.Since = base.Add(c.since)
		}
		if c.until != 0 {
			c.o.Until = base.Add(c.until)
		}
		records, err := show(t, n, c.o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.EqualFunc(records, c.want, func(r logs.Record, part string) bool {
			return strings.Contains(r.Text, part) && (part == "") == (r.Text == "")
		}) {
			t.Errorf("%s: got %.500q, want lines with %q", name, texts(records), c.want)
		}
	}
}

// Of a log that --since cuts, every line is printed, although its messages have older dates.
func TestSinceIgnoresDatesInMessages(t *testing.T) {
	const path = `C:\logs\a.log`
	n := startNode(t)
	now := time.Now().UTC()
	for name, line := range map[string]func(at time.Time, i int) string{
		"of the kubelet": func(at time.Time, i int) string {
			return fmt.Sprintf("I%s    1234 status_manager.go:917] \"Patch status\" pod=\"d/web-%d\" patch=\"{%s}\"\n",
				at.Format("0102 15:04:05.000000"), i,
				strings.Repeat(`{\"lastTransitionTime\":\"2026-03-15T10:00:00Z\",\"type\":\"Ready\"},`, 28))
		},
		"of a container": func(at time.Time, i int) string {
			return fmt.Sprintf("%s stdout F {\"order\":%d,\"items\":[%s]}\n", at.Format(time.RFC3339Nano), i,
				strings.Repeat(`{"sku":"a","at":"2019-05-01T10:00:00Z"},`, 45))
		},
	} {
		var file strings.Builder
		for i := range 1000 {
			file.WriteString(line(now.Add(time.Duration(i-1000)*time.Second), i))
		}
		n.Put(path, []byte(file.String()))
		records, err := show(t, n, logs.Options{Sources: []string{"file:" + path}, Tail: -1, Since: now.Add(-time.Hour)})
		if err != nil || len(records) != 1000 {
			t.Errorf("%s: %d lines of 1000, %v", name, len(records), err)
		}
	}
}

// klog writes no year. It is the latest in which the line is not later than the log's last write.
func TestYearOfKlog(t *testing.T) {
	const path = `C:\logs\a.log`
	n := startNode(t)
	now := time.Now().UTC()
	line := func(at time.Time) string {
		return "I" + at.Format("0102 15:04:05.000000") + "    1234 server.go:1] \"line\"\n"
	}
	for name, c := range map[string]struct {
		lines    []time.Time
		modified time.Time
		since    time.Time
		want     int
	}{
		"ten months ago": {[]time.Time{now.AddDate(0, -10, 0), now.AddDate(0, -7, 0)}, now, now.Add(-10 * time.Minute), 0},
		"of the year before, by its last write": {[]time.Time{now.AddDate(-1, 0, -9), now.AddDate(-1, 0, -8)},
			now.AddDate(-1, 0, -8), now.AddDate(0, 0, -30), 0},
		"still open, of a last write that Windows has not updated": {[]time.Time{now.AddDate(0, 0, -9), now.Add(-time.Minute)},
			now.AddDate(0, 0, -9), now.Add(-10 * time.Minute), 1},
	} {
		var file strings.Builder
		for _, at := range c.lines {
			file.WriteString(line(at))
		}
		n.Put(path, []byte(file.String()))
		if err := n.Files.SetModified(path, c.modified); err != nil {
			t.Fatal(err)
		}
		records, err := show(t, n, logs.Options{Sources: []string{"file:" + path}, Tail: -1, Since: c.since})
		if err != nil || len(records) != c.want {
			t.Errorf("%s: %d lines, want %d: %q, %v", name, len(records), c.want, texts(records), err)
		}
	}
}

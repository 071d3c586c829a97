package capture

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

var update = flag.Bool("update", false, "write the golden files anew")

func modern() Dialect {
	return Dialect{Status: true, Capture: true, RealTime: true, ToPcap: "etl2pcap", ToText: "etl2txt",
		Counters: []string{"counters"}}
}

func older() Dialect { return Dialect{ToText: "format", Counters: []string{"comp", "counters"}} }

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		p, err := ParseAddress(text)
		if err != nil {
			panic(err)
		}
		all = append(all, p)
	}
	return all
}

// TestTheCommandLines compares pktmon's arguments, for every combination of conditions, with
// testdata/commands.txt, which was checked against Microsoft's documentation once.
func TestTheCommandLines(t *testing.T) {
	one := map[string]func(*Options){
		"ip":    func(o *Options) { o.Addresses = prefixes("10.244.1.5") },
		"port":  func(o *Options) { o.Ports = []uint16{53} },
		"proto": func(o *Options) { o.Protocols = []string{"UDP"} },
		"mac":   func(o *Options) { o.MACs = []string{"00-15-5D-0A-0F-A7"} },
	}
	names := []string{"ip", "port", "proto", "mac"}
	var out strings.Builder
	for mask := range 1 << len(names) {
		o := Options{MaxSize: 512 << 20, For: time.Minute}
		var chosen []string
		for i, name := range names {
			if mask&(1<<i) != 0 {
				one[name](&o)
				chosen = append(chosen, name)
			}
		}
		describe(t, &out, strings.Join(chosen, " "), o)
	}
	more := []struct {
		name string
		o    Options
	}{
		{"two of each", Options{Addresses: prefixes("10.244.1.5", "fd00::/64"), Ports: []uint16{53, 80},
			Protocols: []string{"TCP", "UDP"}, MaxSize: 1}},
		{"live", Options{Live: true}},
		{"live drops at nics", Options{Live: true, Drops: true, Components: "nics"}},
		{"drops at components, 2 GB", Options{Drops: true, Components: "4,5", MaxSize: 2 << 30}},
	}
	for _, m := range more {
		describe(t, &out, m.name, m.o)
	}
	golden(t, "commands.txt", out.String())
}

func describe(t *testing.T, out *strings.Builder, name string, o Options) {
	t.Helper()
	plan, err := o.plan(modern(), "ID")
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	fmt.Fprintf(out, "# %s\n", name)
	for _, filter := range plan.Filters {
		fmt.Fprintf(out, "pktmon filter add swdt-ID %s\n", strings.Join(filter, " "))
	}
	fmt.Fprintf(out, "pktmon %s\n\n", strings.Join(plan.Start, " "))
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
	}
}

func TestOlderWindows(t *testing.T) {
	plan, err := (Options{Addresses: prefixes("10.0.0.1"), MaxSize: 5 << 20}).plan(older(), "ID")
	if err != nil || !plan.Blind {
		t.Fatalf("%+v, %v", plan, err)
	}
	want := `start --etw -p 0 -f C:\ProgramData\swdt\capture\ID.etl -s 5`
	if got := strings.Join(plan.Start, " "); got != want {
		t.Errorf("pktmon %s, want %s", got, want)
	}
	for name, o := range map[string]Options{"live": {Live: true}, "drops": {Drops: true},
		"components": {Components: "nics"}} {
		if _, err := o.plan(older(), "ID"); !errors.Is(err, fault.ErrNotSupported) ||
			!strings.Contains(err.Error(), "20348") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTooManyFilters(t *testing.T) {
	o := Options{Protocols: []string{"TCP", "UDP"}}
	for port := range uint16(17) {
		o.Ports = append(o.Ports, port+1)
	}
	var tooMany *TooManyFiltersError
	if _, err := o.plan(modern(), "ID"); !errors.As(err, &tooMany) || tooMany.Needed != 34 {
		t.Errorf("%v", err)
	}
}

func TestFilterFlagsAreParsed(t *testing.T) {
	for text, want := range map[string]string{"00:15:5d:01:02:03": "00-15-5D-01-02-03",
		"00155d010203": "00-15-5D-01-02-03", "0015.5d01.0203": "00-15-5D-01-02-03", "00:15": "", "x0155d010203": "",
		"-00155d010203": "00-15-5D-01-02-03"} {
		if got, err := ParseMAC(text); got != want || (err == nil) != (want != "") {
			t.Errorf("MAC %q: %q, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{"tcp": "TCP", "ICMPV6": "ICMPv6", "132": "132", "256": "", "sctp": "",
		"-1": ""} {
		if got, err := ParseProtocol(text); got != want || (err == nil) != (want != "") {
			t.Errorf("protocol %q: %q, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{"10.0.0.1": "10.0.0.1", "10.0.0.7/24": "10.0.0.0/24",
		"fd00::1": "fd00::1", "fe80::1%eth0": "", "10.0.0": "", "-i": ""} {
		got, err := ParseAddress(text)
		if (err == nil) != (want != "") || err == nil && addressText(got) != want {
			t.Errorf("address %q: %v, %v", text, got, err)
		}
	}
	for text, ok := range map[string]bool{"": true, "all": true, "nics": true, "4,5": true, "4, 5": false,
		"--type": false, "4,": false} {
		if err := ParseComponents(text); (err == nil) != ok {
			t.Errorf("components %q: %v", text, err)
		}
	}
	for text, ok := range map[string]bool{"default/web": true, "web": false, "/web": false, "a/b/c": false} {
		if err := ParseName(text); (err == nil) != ok {
			t.Errorf("name %q: %v", text, err)
		}
	}
}

package imagefit_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/format/imagefit"
	"github.com/swdt-dev/swdt/internal/sandbox/wine/winetest"
)

// versions are the containerds whose code lab/build.sh matchers builds: on both sides of each change.
func versions() []string {
	return []string{"1.6.22", "1.6.27", "1.7.5", "1.7.12", "1.7.35", "2.0.0", "2.0.14", "2.1.5", "2.1.6", "2.3.4", "2.4.2"}
}

// realCase is an index on a host, as lab/matcher reads it.
type realCase struct {
	Host  [3]uint32   `json:"host"`
	Index []realEntry `json:"index"`
}

type realEntry struct {
	Platform *imagefit.Platform `json:"platform"` // nil: the index names none
	Config   imagefit.Platform  `json:"config"`
}

// realChoice is the choice of a real containerd, as lab/matcher writes it.
type realChoice struct {
	Taken  int   `json:"taken"`
	Pulled []int `json:"pulled"`
}

// choose returns the choice that swdt computes.
func (c realCase) choose(t *testing.T, version string) realChoice {
	t.Helper()
	m, err := imagefit.NewMatcher(version, imagefit.Build{Major: int(c.Host[0]), Minor: int(c.Host[1]), Build: int(c.Host[2])})
	if err != nil {
		t.Fatal(err)
	}
	index := make([]*imagefit.Platform, len(c.Index))
	for i, e := range c.Index {
		index[i] = e.Platform
	}
	choice := m.Choose(index)
	if at := choice.Taken; at >= 0 && index[at] == nil && !m.TakesConfig(c.Index[at].Config) {
		choice.Taken = -1
	}
	return realChoice{choice.Taken, append([]int{}, choice.Pulled...)}
}

// recorded is a line of testdata/choices.jsonl: a case, and the choices of the real programs.
type recorded struct {
	realCase
	Choices map[string]realChoice `json:"choices"`
}

const recordedFile = "testdata/choices.jsonl"

// The real containerds' choices, as TestRealContainerdTakesTheSame recorded them, are those of this package.
func TestRecordedChoices(t *testing.T) {
	file, err := os.Open(recordedFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	n := 0
	for decoder := json.NewDecoder(bufio.NewReader(file)); ; n++ {
		var r recorded
		if err := decoder.Decode(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if len(r.Choices) != len(versions()) {
			t.Fatalf("a line has choices of %d versions", len(r.Choices))
		}
		for version, want := range r.Choices {
			if diff := cmp.Diff(want, r.choose(t, version)); diff != "" {
				t.Errorf("%s: -containerd +swdt\n%s%s", version, diff, r.realCase)
			}
		}
	}
	if n < 200 {
		t.Errorf("there are %d lines only", n)
	}
}

func (c realCase) String() string {
	text, err := json.Marshal(c)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// The code of the real containerds, built for Windows, chooses the same as this package: 100,000 random indexes on random hosts
// for each version, with SWDT_MATCHERS=100000 in the stage matchers of `make nightly`. UPDATE_CHOICES=1 records a sample.
func TestRealContainerdTakesTheSame(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("SWDT_MATCHERS"))
	if err != nil || n <= 0 {
		t.Skip("runs programs of lab/build.sh matchers under Wine: set SWDT_MATCHERS to a number of indexes")
	}
	folder := filepath.Join(os.Getenv("SWDT_LAB"), "matcher")
	seed := uint64(1)
	if text := os.Getenv("SWDT_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("SWDT_SEED: %v", err)
		}
	}
	t.Logf("SWDT_SEED=%d", seed)
	all := randomCases(rand.New(rand.NewPCG(seed, 42)), n)
	prefix := winetest.Prepare(t)
	var input bytes.Buffer
	encoder := json.NewEncoder(&input)
	for _, c := range all {
		if err := encoder.Encode(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(prefix.DriveC(), "cases.json"), input.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	record := make([]recorded, len(all))
	for _, version := range versions() {
		winetest.Install(t, filepath.Join(folder, version+".exe"), filepath.Join(prefix.DriveC(), version+".exe"))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		out, err := prefix.Command(ctx, `C:\`+version+`.exe`, `C:\cases.json`, `C:\choices.json`).CombinedOutput()
		cancel()
		if err != nil {
			t.Fatalf("%s: %v\n%s", version, err, out)
		}
		choices, err := os.Open(filepath.Join(prefix.DriveC(), "choices.json"))
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(bufio.NewReader(choices))
		differences, taken := 0, 0
		for i, c := range all {
			var want realChoice
			if err := decoder.Decode(&want); err != nil {
				t.Fatal(err)
			}
			if record[i].Choices == nil {
				record[i] = recorded{c, map[string]realChoice{}}
			}
			record[i].Choices[version] = want
			if want.Taken >= 0 {
				taken++
			}
			if diff := cmp.Diff(want, c.choose(t, version)); diff != "" {
				if differences++; differences <= 5 {
					t.Errorf("%s: -containerd +swdt\n%s%s", version, diff, c)
				}
			}
		}
		choices.Close()
		t.Logf("containerd %s: %d indexes, %d with a manifest that it takes, %d differences", version, len(all), taken, differences)
	}
	if os.Getenv("UPDATE_CHOICES") != "" {
		write(t, record)
	}
}

// write records the cases.
func write(t *testing.T, all []recorded) {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	for _, r := range all {
		if err := encoder.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(recordedFile, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// builds are the builds of Windows, and their neighbours.
func builds() []int {
	return []int{14393, 17763, 18362, 19041, 19042, 20347, 20348, 20349, 22000, 22621, 22631, 25398, 26099, 26100, 26101, 26200, 27842, 65535}
}

func randomCases(r *rand.Rand, n int) []realCase {
	all := make([]realCase, n)
	for i := range all {
		c := &all[i]
		c.Host = [3]uint32{10, 0, uint32(pick(r, builds()))} //nolint:gosec // builds are small
		if r.IntN(50) == 0 {
			c.Host = [3]uint32{6, 3, 9600}
		}
		c.Index = make([]realEntry, r.IntN(7))
		for j := range c.Index {
			e := &c.Index[j]
			p := randomPlatform(r, int(c.Host[2]))
			if r.IntN(15) == 0 {
				e.Config = p // which counts only if the index names no platform
			} else {
				e.Platform = &p
			}
		}
	}
	return all
}

func pick[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

// randomPlatform returns a platform that is mostly one for Windows, and sometimes one that a hostile registry sends.
func randomPlatform(r *rand.Rand, host int) imagefit.Platform {
	p := imagefit.Platform{OS: "windows", Architecture: "amd64", OSVersion: randomVersion(r, host)}
	if r.IntN(6) == 0 {
		p.OS = pick(r, []string{"linux", "Windows", "", "unknown", "WINDOWS"})
	}
	if r.IntN(6) == 0 {
		p.Architecture = pick(r, []string{"386", "i386", "x86_64", "AMD64", "arm64", "", "unknown", "x86-64"})
	}
	if r.IntN(8) == 0 {
		p.Variant = pick(r, []string{"v1", "v2", "v3", "V1", "8"})
	}
	if r.IntN(4) == 0 {
		p.OSFeatures = pick(r, [][]string{{"win32k"}, {"win32k", "win32k"}, {"other"}, {"win32k", "other"}, {"other", "win32k"}, {""}})
	}
	return p
}

func randomVersion(r *rand.Rand, host int) string {
	build := pick(r, builds())
	if r.IntN(3) == 0 {
		build = host
	}
	version := fmt.Sprintf("10.0.%d", build)
	switch r.IntN(12) {
	case 0:
		return ""
	case 1:
		return version
	case 2:
		return pick(r, []string{"10.0", "10", ".", "..", "...", "10.0.x.1", "10.x.20348.1", "x.0.20348.1", "10..20348.1", "10.0..1",
			"10.0.+20348.1", "10.0.-1.1", "+10.0.20348.5", "266.0.20348.9", "10.256.26100.3", "10.0.85884.2", "10.0.91636.4",
			"10.0.99999999999999999999.1", "-246.0.20348.1", "10.0.020348.1", "010.00.20348.1", " 10.0.20348.1", "10.0.20348 .1",
			"6.3.9600.1", "6.3.9600", strings.Repeat("9", 40)})
	case 3:
		return version + pick(r, []string{".", ".x", ".1.2", ".-5", ".+7", ".99999999999999999999", "0.1", "5", ".007"})
	}
	return version + "." + strconv.Itoa(pick(r, []int{1, 5, 587, 707, 1006, 1742, 2849, 2894, 4529, 7462, 10000, 32370}))
}

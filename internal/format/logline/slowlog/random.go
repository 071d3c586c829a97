package slowlog

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Quoted is the head of an old line, which messages quote.
const Quoted = "F0101 01:01:01.000000    1 x.go:1] "

// Random returns a log of about the given number of lines: of several formats, with times that are
// nearly in order and end at now, traces, dates in messages and in continuation lines, long lines
// and the runs of NUL that a crash leaves.
func Random(r *rand.Rand, lines int, now time.Time) string {
	var file strings.Builder
	formats := heads()
	format := formats[r.IntN(len(formats))]
	for i := range lines {
		if r.IntN(40) == 0 {
			format = formats[r.IntN(len(formats))]
		}
		at := now.Add(time.Duration(i-lines)*time.Second + time.Duration(r.IntN(4000)-2000)*time.Millisecond)
		if r.IntN(50) == 0 {
			at = now.Add(-time.Duration(r.IntN(lines+1)) * time.Second) // the clock was set
		}
		switch r.IntN(12) {
		case 0:
			file.WriteString(continuation(r, now))
		case 1:
			file.WriteString(strings.Repeat("\x00", 1+r.IntN(40)))
		case 2:
			file.WriteString(format(r, at, strings.Repeat(`{"lastTransitionTime":"2026-03-15T10:00:00Z"} `, r.IntN(30))))
		default:
			file.WriteString(format(r, at, fmt.Sprintf("line %d since %s, then "+Quoted+"text", i, now.Add(-1e12).Format(time.RFC3339))))
		}
		file.WriteString([]string{"\n", "\r\n"}[r.IntN(2)])
	}
	return file.String()
}

func continuation(r *rand.Rand, now time.Time) string {
	all := []string{
		"panic: runtime error: invalid memory address", "fatal error: all goroutines are asleep - deadlock!",
		"goroutine 88 [running]:", "\t/build/proxier.go:1495 +0x9dc", "Exception 0xc0000005 0x8 0x18 0x7ff6",
		"  Not After : 2027-11-29T01:00:00Z", "2019-05-01T10:00:00Z", "2099-05-01T10:00:00Z is far away", "",
		now.Add(time.Duration(r.IntN(100)-200) * time.Second).Format(time.RFC3339),
	}
	return all[r.IntN(len(all))]
}

func heads() []func(*rand.Rand, time.Time, string) string {
	klog := func(r *rand.Rand, at time.Time, text string) string {
		return fmt.Sprintf("%c%s    1234 x.go:1] %q", "IWEF"[r.IntN(4)], at.Format("0102 15:04:05.000000"), text)
	}
	word := func(r *rand.Rand) string { return []string{"info", "error"}[r.IntN(2)] }
	return []func(*rand.Rand, time.Time, string) string{
		klog,
		func(r *rand.Rand, at time.Time, text string) string { return "kube-proxy.exe : " + klog(r, at, text) },
		func(r *rand.Rand, at time.Time, text string) string {
			return fmt.Sprintf("time=%q level=%s msg=%q", at.Format(time.RFC3339Nano), word(r), text)
		},
		func(r *rand.Rand, at time.Time, text string) string {
			return fmt.Sprintf(`{"level":%q,"msg":%q,"time":%q}`, word(r), text, at.Format(time.RFC3339Nano))
		},
		func(r *rand.Rand, at time.Time, text string) string {
			return at.Format(time.RFC3339Nano) + " " + strings.ToUpper(word(r)) + " " + text
		},
		func(_ *rand.Rand, at time.Time, text string) string { return at.Format(time.RFC3339Nano) + " " + text },
	}
}

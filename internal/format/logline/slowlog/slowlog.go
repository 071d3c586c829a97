// Package slowlog reads a log in the slowest and simplest way: the whole file, line by line, with
// regular expressions. Tests compare it with the product, which reads blocks from the end of a file.
// It knows only the forms of lines that Random writes.
package slowlog

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/logline"
)

// Options select lines, as the flags of `swdt logs` do. A zero field selects all lines.
type Options struct {
	Now, Since, Until time.Time
	Level             logline.Level
	Run               int // if set: the log is older before the last run of so many lines that are
}

// Read returns the selected lines of a log.
func Read(file string, o Options) (kept []string) {
	var at, certain time.Time // of the latest line with a time, and with one that is beyond doubt
	level, sinceCertain, headed, run := logline.Unknown, memory, false, 0
	for _, line := range regexp.MustCompile(`\r?\n|\x00+`).Split(strings.TrimPrefix(file, "\ufeff"), -1) {
		if line == "" {
			continue
		}
		h := headOf(line, o.Now)
		sinceCertain++
		doubted := sinceCertain <= memory && h.at.Before(certain.Add(-time.Minute)) || h.at.After(o.Now.AddDate(0, 0, 1))
		if h.doubtful && doubted {
			h = head{}
		} else if !h.at.IsZero() && !h.doubtful {
			certain, sinceCertain = h.at, 0
		}
		if !h.at.IsZero() {
			if run++; !h.at.Before(o.Since) {
				run = 0
			}
			if run > 0 && (!headed || run == o.Run) {
				kept = nil // the lines before the first time are not later than it
			}
			at, level, headed = h.at, h.level, true
		} else if h.level != logline.Unknown {
			level = h.level
		}
		if !at.IsZero() && at.Before(o.Since) || !o.Until.IsZero() && at.After(o.Until) || level < o.Level {
			continue
		}
		kept = append(kept, line)
	}
	return kept
}

// memory is how many lines a time that is beyond doubt is compared with doubtful ones.
const memory = 100

type head struct {
	at       time.Time
	level    logline.Level
	doubtful bool
}

func headOf(line string, now time.Time) (h head) {
	if found := klog.FindStringSubmatch(line); found != nil {
		at, _ := time.ParseInLocation("20060102 15:04:05.999999", now.Format("2006")+found[2], now.Location())
		if at.After(now.AddDate(0, 0, 1)) {
			at = at.AddDate(-1, 0, 0)
		}
		return head{at: at, level: levels[found[1]]}
	}
	if found := logrus.FindStringSubmatch(line); found != nil {
		return head{at: stamp(found[1]), level: levels[found[2]]}
	}
	var fields struct{ Time, Level string }
	if json.Unmarshal([]byte(line), &fields) == nil && fields.Time != "" {
		return head{at: stamp(fields.Time), level: levels[fields.Level]}
	}
	if found := dated.FindStringSubmatch(line); found != nil {
		return head{at: stamp(found[1]), level: levels[found[2]], doubtful: found[2] == ""}
	}
	if panics.MatchString(line) {
		return head{level: logline.Fatal}
	}
	return head{}
}

func stamp(text string) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, text)
	return at
}

var (
	klog   = regexp.MustCompile(`^(?:[\w.-]+ : )?([IWEF])(\d{4} \d\d:\d\d:\d\d\.\d+) +\d+ \S+:\d+\] `)
	logrus = regexp.MustCompile(`^time="([^"]+)" level=(\w+) `)
	dated  = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)(?: |$)(?:(INFO|ERROR) )?`)
	panics = regexp.MustCompile(`^(panic: |fatal error: |Exception 0x)`)
	levels = map[string]logline.Level{"I": logline.Info, "W": logline.Warning, "E": logline.Error, "F": logline.Fatal,
		"info": logline.Info, "INFO": logline.Info, "error": logline.Error, "ERROR": logline.Error}
)

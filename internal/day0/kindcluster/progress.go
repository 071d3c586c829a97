package kindcluster

import (
	"fmt"
	"strings"
	"unicode"

	"sigs.k8s.io/kind/pkg/log"

	"github.com/swdt-dev/swdt/internal/ui"
)

// kindsCgroups begins kind's warning about a machine with version 1 of control groups. warnOfCgroups warns
// of the same, with a remedy.
const kindsCgroups = "cgroup v1 is deprecated"

// progress passes kind's messages to a reporter.
type progress struct{ r ui.Reporter }

// Progress returns a log for kind that reports its stages as steps.
func Progress(r ui.Reporter) log.Logger { return progress{r} }

func (p progress) Warn(message string) {
	if strings.HasPrefix(message, kindsCgroups) {
		return
	}
	p.r.Warn("%s", plain(message))
}

func (p progress) Warnf(format string, a ...any)  { p.Warn(fmt.Sprintf(format, a...)) }
func (p progress) Error(message string)           { p.r.Warn("%s", plain(message)) }
func (p progress) Errorf(format string, a ...any) { p.Error(fmt.Sprintf(format, a...)) }

func (p progress) V(level log.Level) log.InfoLogger { return stage{p.r, level} }

// stage receives the messages of one verbosity.
type stage struct {
	r     ui.Reporter
	level log.Level
}

// Enabled reports whether messages of this verbosity are reported. At a higher verbosity, kind
// writes whole logs of kubeadm.
func (s stage) Enabled() bool { return s.level <= 1 }

func (s stage) Infof(format string, a ...any) { s.Info(fmt.Sprintf(format, a...)) }

// Info reports the beginning of a stage as a step, and other messages at debug level. kind writes
// the name of a stage with the mark • when the stage begins, and with another mark when it has
// ended.
func (s stage) Info(message string) {
	begins := strings.HasPrefix(strings.TrimSpace(message), "•")
	switch text := plain(message); {
	case text == "" || !s.Enabled():
	case s.level == 0 && begins:
		s.r.Step("%s", text)
	default:
		s.r.Debug("%s", text)
	}
}

// plain removes kind's marks and pictures from a message, and the dots at its end.
func plain(message string) string {
	text := strings.Map(func(r rune) rune {
		if r > unicode.MaxLatin1 {
			return -1
		}
		return r
	}, message)
	return strings.TrimRight(strings.Join(strings.Fields(text), " "), " .")
}

package join_test

import (
	"fmt"
	"strings"
	"sync"

	"github.com/swdt-dev/swdt/internal/ui"
)

// story records the messages of a run.
type story struct {
	mu    sync.Mutex
	lines []string
}

func (s *story) add(kind, format string, args []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, kind+": "+fmt.Sprintf(format, args...))
}

func (s *story) Step(format string, args ...any)  { s.add("step", format, args) }
func (s *story) Info(format string, args ...any)  { s.add("info", format, args) }
func (s *story) Warn(format string, args ...any)  { s.add("warn", format, args) }
func (s *story) Debug(format string, args ...any) { s.add("debug", format, args) }

func (s *story) Transfer(string, int64) ui.Progress { return ui.Discard{}.Transfer("", 0) }

func (s *story) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

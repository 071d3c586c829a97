package vm

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile/earlier"
)

// starts holds the times at which this process has started VMs. Only the starts of these VMs are
// measured: the guest of any other VM may have been up for hours before swdt asks its SSH server.
type starts struct {
	mu sync.Mutex
	at map[string]time.Time // by the VM's name
}

func (s *starts) begin(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[name] = time.Now()
}

// since returns the time since this process started a VM. The second result is false if this
// process has not started the VM.
func (s *starts) since(name string) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	begun, ok := s.at[name]
	return time.Since(begun), ok
}

// startKind returns the key under which swdt stores how long a VM takes from its start until its
// SSH server answers. VMs of the same image take about the same time, but the first start takes
// longer.
func startKind(record Record, accelerator string) string {
	image, which := record.Image.String(), "start"
	if adopted := record.adopted(); adopted != "" {
		image = adopted
	}
	if record.FirstStart {
		which = "first start"
	}
	return fmt.Sprintf("%s of %s by %s with %s", which, orNone(image), record.Driver, accelerator)
}

// lastStart returns a text with the time that earlier starts of the same kind took (see startKind).
// It returns "" if no such time is known, if the present start already takes longer, or if the VM
// cannot be examined.
func (s *Machines) lastStart(ctx context.Context, name string) (took string) {
	_, _ = s.with(ctx, name, func(record Record, driver Driver) (Report, error) {
		status, err := driver.Status(ctx, record.Machine)
		if err != nil {
			return Report{}, err // without a status, Await shows no estimate
		}
		since, ours := s.starts.since(name)
		if !ours && !status.Since.IsZero() {
			since = time.Since(status.Since)
		}
		if last := s.times.Of(startKind(record, status.Accelerator)); last > since {
			took = earlier.Before(last)
		}
		return Report{}, nil
	})
	return took
}

// rememberStart stores how long the guest needed from the VM's start until its SSH server answered.
// It does nothing if another process has started the VM.
func (s *Machines) rememberStart(record Record, accelerator string) {
	if took, ours := s.starts.since(record.Name); ours {
		s.times.Remember(startKind(record, accelerator), took)
	}
}

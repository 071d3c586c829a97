package watch

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// ahead records the work that was done ahead: for which content and for how long.
type ahead struct {
	takes time.Duration

	mutex sync.Mutex
	done  []string
}

func (a *ahead) prepare(ctx context.Context, binary *Binary) {
	content, _ := os.ReadFile(binary.Path)
	a.note(string(content) + " begun")
	if sleep(ctx, a.takes) != nil {
		a.note(string(content) + " given up")
		return
	}
	a.note(string(content) + " ready")
}

func (a *ahead) note(what string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.done = append(a.done, what)
}

func (a *ahead) expect(t *testing.T, want string) {
	t.Helper()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if got := strings.Join(a.done, ", "); got != want {
		t.Errorf("done ahead: %s; want %s", got, want)
	}
	a.done = nil
}

func TestPatchIsMadeWhileTheFileSettles(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		n := b.target("n", b.binary("kubelet", nil))
		a := &ahead{takes: Quiet} // longer than the rest of the wait
		b.options.Prepare = a.prepare
		b.start()
		b.pass(early)
		a.expect(t, "one. begun")
		b.pass(Quiet - early) // the push begins while its patch is still being made
		n.expect("kubelet=one.")
		a.expect(t, "")
		b.pass(early)
		a.expect(t, "one. ready")
		b.pass(time.Minute)
		a.expect(t, "")
	})
}

func TestPatchOfAChangingFileIsGivenUp(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		n := b.target("n", b.binary("kubelet", nil))
		a := &ahead{takes: 10 * Quiet}
		b.options.Prepare = a.prepare
		b.start()
		b.pass(2 * early)
		b.write("kubelet", "half") // before it has settled
		b.pass(2 * early)
		a.expect(t, "one. begun, one. given up")
		b.write("kubelet", "three.")
		b.pass(Quiet)
		n.expect("kubelet=three.")
		b.rename("kubelet", "four.") // and while it is pushed
		b.pass(1)
		a.expect(t, "three. begun, three. given up")
	})
}

package watch

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackingOffOnErrors(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		n := b.target("n", b.binary("kubelet", nil))
		n.failing = []error{errOften, errOften, errOften, errOften, errOften, errOften, errOften, errOften,
			errOften, errNever}
		b.start()
		b.pass(Quiet + (1+2+4+8+16)*time.Second)
		b.want("failed+1s failed+2s failed+4s failed+8s failed+16s failed+30s")
		b.write("kubelet", "two!.") // after a change, the watch retries at once with fresh delays
		b.pass(Quiet)
		b.want("failed+1s")
		b.pass(time.Second)
		b.want("failed+2s")
		b.pass(2 * time.Second)
		b.want("failed+4s")
		b.pass(4 * time.Second)
		b.want("failed")
		b.pass(time.Hour) // waiting does not help against the last error
		b.want("")
		b.write("kubelet", "three!.")
		b.pass(Quiet)
		n.expect("kubelet=three!.")
	})
}

func TestReconnecting(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		n := b.target("n", b.binary("kubelet", nil))
		n.connecting = []error{errOften, errOften}
		b.start()
		b.pass(3 * time.Second)
		b.want("failed+1s failed+1s pushed") // a change of the file causes an immediate retry
		n.expect("kubelet=one.")
		n.connecting = []error{errOften, errOften}
		n.cut()
		b.pass(time.Second)
		b.want("lost failed+1s failed+2s")
		b.write("kubelet", "two!.")
		b.pass(Quiet)
		n.expect("kubelet=two!.")
		b.want("pushed")
		if n.connects != 6 {
			t.Errorf("%d connections", n.connects)
		}
	})
}

func TestAConnectionThatIsRefusedForGood(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		n := b.target("n", b.binary("kubelet", nil))
		n.connecting = []error{errNever, errNever}
		b.start()
		b.pass(Quiet) // the file's first change causes a retry
		b.want("failed failed")
		b.pass(time.Hour)
		b.want("")
		b.commands <- Again
		synctest.Wait()
		n.expect("kubelet=one. forced")
	})
}

func TestNodesDoNotWaitForEachOther(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		kubelet := b.binary("kubelet", nil)
		slow, fast := b.target("slow", kubelet), b.target("fast", kubelet)
		slow.swapping = time.Minute
		b.start()
		b.pass(time.Second)
		fast.expect("kubelet=one.")
		b.write("kubelet", "two!.")
		b.pass(time.Second)
		fast.expect("kubelet=two!.")
		slow.expect("")
		b.pass(2 * time.Minute)
		slow.expect("kubelet=one.; kubelet=two!.")
	})
}

func TestCommands(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		n := b.target("n", b.binary("kubelet", nil))
		b.start()
		b.pass(time.Second)
		b.commands <- Again
		synctest.Wait()
		n.expect("kubelet=one.; kubelet=one. forced")
		b.commands <- RollBack
		synctest.Wait()
		n.expect("back")
		b.want("pushed pushed rolledBack")
		b.pass(time.Hour)
		n.expect("")
		n.swapping = time.Minute
		b.commands <- Again
		b.pass(time.Second)
		b.commands <- RollBack // after the push that has begun
		b.pass(time.Minute)
		n.expect("kubelet=one. forced; back")
	})
}

func TestQuit(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		n := b.target("n", b.binary("kubelet", nil))
		n.swapping = time.Minute
		b.start()
		b.pass(time.Second)
		b.commands <- Quit
		b.pass(time.Second)
		if len(b.ended) != 0 {
			t.Error("did not let the transaction finish")
		}
		b.pass(time.Minute)
		if err := <-b.ended; err != nil {
			t.Error(err)
		}
		n.expect("kubelet=one.")
		if !n.closed {
			t.Error("the connection stays open")
		}
		b.ended = nil
	})
}

func TestInterruptedInATransaction(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		n := b.target("n", b.binary("kubelet", nil))
		n.swapping = time.Minute
		b.start()
		b.pass(time.Second)
		begun := time.Now()
		b.cancel(errors.New("interrupted"))
		err := <-b.ended
		switch {
		case err == nil:
			t.Error("no error, want one")
		case !strings.Contains(err.Error(), "interrupted"):
			t.Errorf("err.Error() lacks %q:\n%s", "interrupted", err.Error())
		case !strings.Contains(err.Error(), "the node goes on alone"):
			t.Errorf("err.Error() lacks %q:\n%s", "the node goes on alone", err.Error())
		}
		if time.Since(begun) > time.Second {
			t.Errorf("took %s", time.Since(begun))
		}
		b.ended = nil
	})
}

// A component whose source is not watched is pushed at the start, and with every change of another
// component.
func TestComponentsThatAreNotWatched(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		n := b.target("n", b.binary("kubelet", nil))
		b.options.Targets[0].Components = append(b.options.Targets[0].Components, Component{Name: "remote"})
		b.start()
		b.pass(time.Second)
		n.expect("kubelet=one. remote=")
	})
}

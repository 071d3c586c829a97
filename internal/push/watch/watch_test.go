package watch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestStartingUpCountsAsAChange(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		n := b.target("n", b.binary("kubelet", nil))
		b.start()
		b.pass(Quiet)
		n.expect("kubelet=one.")
		b.want("pushed")
		b.pass(time.Minute)
		n.expect("")
	})
}

func TestRenamedOver(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		n := b.target("n", b.binary("kubelet", nil))
		b.start()
		b.pass(time.Second)
		n.expect("kubelet=one.")
		b.rename("kubelet", "two.")
		b.pass(Quiet - 1)
		n.expect("")
		b.pass(1)
		n.expect("kubelet=two.")
	})
}

// A file is replaced by a rename, with the same size and time as the old one.
func TestRenamedOverWithTheSameTime(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		info, err := os.Stat(filepath.Join(b.folder, "kubelet"))
		if err != nil {
			t.Fatal(err)
		}
		n := b.target("n", b.binary("kubelet", nil))
		b.start()
		b.pass(time.Second)
		n.expect("kubelet=one.")
		b.silent = true
		b.rename("kubelet", "two.")
		if err := os.Chtimes(filepath.Join(b.folder, "kubelet"), info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		b.pass(fileSafety + Quiet)
		n.expect("kubelet=two.")
	})
}

func TestAFileIsPushedOnceItIsWhole(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		n := b.target("n", b.binary("kubelet", nil))
		b.start()
		b.pass(time.Second)
		n.expect("kubelet=one.")
		b.kinds()
		for length := range len("written slowly") {
			b.write("kubelet", "written slowly"[:length+1])
			b.pass(Quiet / 2)
		}
		b.pass(Quiet) // the file no longer changes, and is incomplete
		n.expect("")
		b.want("")
		b.pass(reportBrokenAfter)
		b.want("waiting")
		b.write("kubelet", "written slowly.")
		b.pass(Quiet)
		n.expect("kubelet=written slowly.")
		b.want("pushed")
	})
}

// Writing through a memory map may cause no event.
func TestAFileThatBecomesWholeUnseen(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "half!")
		path := filepath.Join(b.folder, "kubelet")
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		n := b.target("n", b.binary("kubelet", nil))
		b.start()
		b.pass(10 * time.Second)
		b.want("waiting")
		if err := errors.Join(os.WriteFile(path, []byte("full."), 0o600),
			os.Chtimes(path, info.ModTime(), info.ModTime())); err != nil {
			t.Fatal(err)
		}
		b.pass(fileSafety)
		n.expect("kubelet=full.")
	})
}

func TestAFileThatVanishesIsWaitedFor(t *testing.T) {
	onBench(t, func(b *bench) {
		n := b.target("n", b.binary("kubelet", nil))
		b.start()
		b.pass(time.Minute)
		b.want("waiting")
		b.write("kubelet", "one.")
		b.pass(Quiet)
		n.expect("kubelet=one.")
		if err := os.Remove(filepath.Join(b.folder, "kubelet")); err != nil {
			t.Fatal(err)
		}
		b.notify(filepath.Join(b.folder, "kubelet"))
		b.pass(time.Second) // gone for a moment only, as during linking
		b.write("kubelet", "two.")
		b.pass(Quiet)
		n.expect("kubelet=two.")
		b.want("pushed pushed")
	})
}

func TestATouchedFileIsLookedAtAgain(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		n := b.target("n", b.binary("kubelet", nil))
		b.start()
		b.pass(time.Second)
		n.expect("kubelet=one.")
		b.notify(filepath.Join(b.folder, "kubelet")) // nothing changed
		b.pass(time.Second)
		n.expect("")
	})
}

func TestWithoutNotifications(t *testing.T) {
	for name, prepare := range map[string]func(b *bench){
		"none":    func(b *bench) { b.options.Notifier = nil },
		"refused": func(b *bench) { b.refuses = true },
	} {
		t.Run(name, func(t *testing.T) {
			onBench(t, func(b *bench) {
				b.silent = true
				prepare(b)
				b.write("kubelet", "one.")
				n := b.target("n", b.binary("kubelet", nil))
				b.start()
				b.pass(time.Second)
				n.expect("kubelet=one.")
				b.rename("kubelet", "two!.")
				b.pass(filePoll + Quiet)
				n.expect("kubelet=two!.")
			})
		})
	}
}

func TestALostNotificationCostsSecondsOnly(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		n := b.target("n", b.binary("kubelet", nil))
		b.start()
		b.pass(time.Second)
		n.expect("kubelet=one.")
		b.silent = true
		b.write("kubelet", "two!.")
		b.pass(fileSafety + Quiet)
		n.expect("kubelet=two!.")
	})
}

func TestTheNotifierEnds(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		n := b.target("n", b.binary("kubelet", nil))
		b.start()
		b.pass(time.Second)
		n.expect("kubelet=one.")
		close(b.fakeNotifier.events)
		b.silent = true
		b.pass(fileSafety)
		b.write("kubelet", "two!.")
		b.pass(filePoll + Quiet)
		n.expect("kubelet=two!.")
	})
}

func TestSeveralBinariesGoTogether(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "k1.")
		b.write("containerd", "c1.")
		n := b.target("n", b.binary("containerd", nil), b.binary("kubelet", nil))
		b.start()
		b.pass(time.Second)
		n.expect("containerd=c1. kubelet=k1.")
		b.write("kubelet", "k2!.")
		b.pass(Quiet / 2)
		b.write("containerd", "c2!.")
		b.pass(Quiet / 2)
		n.expect("")
		b.pass(Quiet / 2)
		n.expect("containerd=c2!. kubelet=k2!.")
	})
}

// A broken binary delays the others only as long as it may still become complete.
func TestABrokenBinaryDoesNotHoldOthersUp(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "k1.")
		b.write("containerd", "c1.")
		n := b.target("n", b.binary("containerd", nil), b.binary("kubelet", nil))
		b.start()
		b.pass(time.Second)
		n.expect("containerd=c1. kubelet=k1.")
		b.write("containerd", "broken")
		b.write("kubelet", "k2!.")
		b.pass(Quiet)
		n.expect("")
		b.pass(reportBrokenAfter)
		n.expect("kubelet=k2!.")
		b.want("pushed waiting pushed")
	})
}

func TestANewerBuildEndsAPushThatHasNotReachedTheSwap(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		n := b.target("n", b.binary("kubelet", nil))
		n.sending = time.Minute
		b.start()
		b.pass(10 * time.Second)
		b.rename("kubelet", "two!.")
		b.pass(Quiet)
		b.want("superseded")
		b.pass(time.Minute)
		n.expect("kubelet=two!.")
		b.want("pushed")
	})
}

func TestASwapIsLeftToFinish(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		n := b.target("n", b.binary("kubelet", nil))
		n.swapping = time.Minute
		b.start()
		b.pass(10 * time.Second)
		b.rename("kubelet", "two!.")
		b.pass(10 * time.Second)
		b.rename("kubelet", "three!.")
		b.pass(41 * time.Second)
		n.expect("kubelet=one.")
		b.pass(time.Minute)
		n.expect("kubelet=three!.")
		b.want("pushed pushed")
	})
}

// The file is overwritten while it is sent: that is no failure to report.
func TestAPushThatFailsForItsFileChanged(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "one.")
		n := b.target("n", b.binary("kubelet", nil))
		n.sending = time.Second
		n.failing = []error{errNever}
		b.start()
		b.pass(Quiet + 900*time.Millisecond)
		b.write("kubelet", "tw") // begun
		b.pass(150 * time.Millisecond)
		b.want("superseded")
		b.write("kubelet", "two!.")
		b.pass(5 * time.Second)
		n.expect("kubelet=two!.")
		b.want("pushed")
	})
}

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

package watch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
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

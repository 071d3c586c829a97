package swap

import "testing"

func TestMentions(t *testing.T) {
	const path = `C:\k\kubelet.exe`
	for line, want := range map[string]bool{
		`C:\k\kubelet.exe`:          true,
		`"c:/k/Kubelet.exe" --v=2`:  true,
		"C:\\k\\kubelet.exe\t--v=2": true,
		`runner.exe --log-file=C:\k\kubelet.exe.log C:\k\kubelet.exe --v=2`: true,
		`runner.exe C:\k\kubelet.exe.bak`:                                   false,
		`C:\k\kubelet.exe2 C:\k\kubelet.exe.old`:                            false,
		``:                                                                  false,
	} {
		if got := mentions(line, path); got != want {
			t.Errorf("%q: %t, want %t", line, got, want)
		}
	}
}

// Only the names that a transaction gives to an old binary count: others are files of the user's, or
// of a folder, in which a service may run another program.
func TestIsBeside(t *testing.T) {
	const destination = `C:\k\kubelet.exe`
	for path, want := range map[string]bool{
		`C:\k\kubelet.exe.swdt-old`:                   true,
		`c:/k/Kubelet.exe.swdt-undo`:                  true,
		`C:\k\kubelet.exe.swdt-stale-20261123-1-undo`: true,
		`C:\k\kubelet.exe.swdt-stale-`:                false,
		`C:\k\kubelet.exe.swdt-stale-x\other.exe`:     false,
		`C:\k\kubelet.exe.swdt-before`:                false,
		`C:\k\kubelet.exe.swdt-old.exe`:               false,
		`C:\k\kubelet.exe.swdt-mine`:                  false,
		`C:\k\kubelet.exe.swdt-folder\other.exe`:      false,
		`C:\k\kubelet.exe`:                            false,
		`C:\k\containerd.exe.swdt-old`:                false,
	} {
		if got := isBeside(destination, path); got != want {
			t.Errorf("%s: %t, want %t", path, got, want)
		}
	}
}

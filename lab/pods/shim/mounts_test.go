package main

import "testing"

func TestMountedPaths(t *testing.T) {
	mounts := []mount{{Destination: `C:\swdt`, Source: `C:\var\lib\kubelet\pods\1\probe`}}
	for arg, want := range map[string]string{
		`C:\swdt\swdt-probe.exe`:         `C:\var\lib\kubelet\pods\1\probe\swdt-probe.exe`,
		`c:\SWDT\x`:                      `C:\var\lib\kubelet\pods\1\probe\x`,
		`C:/swdt/x`:                      `C:\var\lib\kubelet\pods\1\probe\x`,
		`C:\swdt`:                        `C:\var\lib\kubelet\pods\1\probe`,
		"file:///C:/swdt/swdt-probe.exe": "file:///C:/var/lib/kubelet/pods/1/probe/swdt-probe.exe",
		`C:\swdt2\x`:                     `C:\swdt2\x`,
		"http://10.0.0.1/C:/swdt/x":      "http://10.0.0.1/C:/swdt/x",
		"--upload-file":                  "--upload-file",
		"":                               "",
	} {
		if got := mounted(mounts, arg); got != want {
			t.Errorf("%s becomes %s, want %s", arg, got, want)
		}
	}
}

func TestEmptyDirs(t *testing.T) {
	empty := mount{`C:\swdt`, `c:\var\lib\kubelet\pods\1\volumes\kubernetes.io~empty-dir\probe`}
	got := emptyDirs([]mount{{`C:\logs`, `C:\var\log`}, {empty.Destination, `\\?\` + empty.Source}})
	if len(got) != 1 || got[0] != empty {
		t.Errorf("%v", got)
	}
}

func TestOnDrive(t *testing.T) {
	for path, want := range map[string]string{
		`C:\var\lib`:     `C:\var\lib`,
		`\\?\C:\var\lib`: `C:\var\lib`,
		`\\?\Volume{00000000-0000-0000-0000-000000000043}\var\lib`: `C:\var\lib`,
		`C:\a}\b`: `C:\a}\b`,
	} {
		if got := onDrive(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

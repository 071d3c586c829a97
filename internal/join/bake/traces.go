package bake

import (
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/join"
)

// trace selects files or folders that must not be in an image.
type trace struct {
	// folder contains the traces. One name in its path may be *, which stands for every folder at
	// that place.
	folder string
	// named reports whether an entry of the folder is a trace. It gets the entry's name in lower
	// case.
	named func(name string) bool
}

func all(string) bool { return true }

func called(names ...string) func(string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}

func beginning(prefix string) func(string) bool {
	return func(name string) bool { return strings.HasPrefix(name, prefix) }
}

const (
	sshFolder      = `C:\ProgramData\ssh`
	userSSH        = `C:\Users\*\.ssh`
	historyFolder  = `C:\Users\*\AppData\Roaming\Microsoft\Windows\PowerShell\PSReadLine`
	panther        = `C:\Windows\Panther`
	sysprepFolder  = `C:\Windows\System32\Sysprep`
	administrators = "administrators_authorized_keys"
	winlogon       = `HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Winlogon`
)

// traces returns the files that must not be in an image. logFolder is the folder of containerd's
// log.
func (o Options) traces(logFolder string) []trace {
	traces := []trace{
		// The hosts that the machine has contacted, and the history of typed commands.
		{sshFolder, beginning("known_hosts")}, {sshFolder, beginning("ssh_known_hosts")},
		{userSSH, beginning("known_hosts")}, {historyFolder, all},
		// Answer files of the installation, which contain the administrator's password.
		{panther, beginning("unattend")}, {panther, beginning("autounattend")},
		{sysprepFolder, called("unattend.xml")}, {`C:\`, called("unattend.xml", "autounattend.xml")},
		// Logs of the build.
		{`C:\var\log\kubelet`, all}, {`C:\var\log\kube-proxy`, all}, {`C:\var\log\pods`, all},
		{`C:\var\log\containers`, all}, {sshFolder + `\logs`, all}, {logFolder, all},
	}
	if !o.KeepHostKeys {
		traces = append(traces, trace{sshFolder, beginning("ssh_host_")})
	}
	if !o.KeepAuthorizedKeys {
		traces = append(traces, trace{sshFolder, called(administrators)},
			trace{userSSH, beginning("authorized_keys")})
	}
	for _, path := range join.Identity() {
		at := strings.LastIndex(path, `\`)
		if strings.HasSuffix(path, `\pki`) { // the folder stays, with its access list; its content is a trace
			traces = append(traces, trace{path, all})
			continue
		}
		traces = append(traces, trace{path[:at], called(strings.ToLower(path[at+1:]))})
	}
	return traces
}

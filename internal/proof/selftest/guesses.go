package selftest

import (
	"fmt"
	"io"
	"strings"
)

// Guess is a belief about Windows for which swdt has no source: a stand-in answers by it, and no document, published
// source or recording says so, or it leaves a doubt.
type Guess struct {
	Belief  string // what the stand-ins answer
	IfWrong string // what a user of a real Windows then sees
	Settle  string // how a person with such a Windows finds out; the claims of a run, or steps by hand

	// judge returns what the claims of a run say; nil: no claim tries it.
	judge func(r Report) Verdict
}

// Verdict is the result of a run for a guess.
type Verdict string

const (
	Right Verdict = "right"
	Wrong Verdict = "wrong"
	Open  Verdict = "open" // the run did not try it, or this node is none that shows it
)

// Judged is a guess with the verdict of a run.
type Judged struct {
	Number  int     `json:"number"` // in docs/guesses.md; 1 is the most dangerous
	Belief  string  `json:"belief"`
	Verdict Verdict `json:"verdict"`
}

// judged returns the verdicts of a run on all guesses, the most dangerous first.
func (r Report) judged() []Judged {
	all := []Judged{}
	for i, g := range Guesses() {
		verdict := Open
		if g.judge != nil {
			verdict = g.judge(r)
		}
		all = append(all, Judged{i + 1, g.Belief, verdict})
	}
	return all
}

// result returns the result of a claim; that of a claim that the report does not have is empty.
func (r Report) result(id string) Result {
	for _, c := range r.Claims {
		if c.ID == id {
			return c
		}
	}
	return Result{}
}

// answerOf returns an answer to a claim, or "".
func (r Report) answerOf(id, key string) string {
	for _, a := range r.result(id).Answers {
		if a.Key == key {
			return a.Value
		}
	}
	return ""
}

// byClaims judges a guess that holds if all these claims pass, on a node on which shows returns true.
func byClaims(shows func(Report) bool, claims ...string) func(Report) Verdict {
	return func(r Report) Verdict {
		if !shows(r) {
			return Open
		}
		verdict := Right
		for _, id := range claims {
			switch r.result(id).Outcome {
			case Passed:
			case Failed:
				return Wrong
			default:
				verdict = Open
			}
		}
		return verdict
	}
}

// byAnswer judges a guess by the answer to a claim.
func byAnswer(claim, key, right string) func(Report) Verdict {
	return func(r Report) Verdict {
		switch r.answerOf(claim, key) {
		case "":
			return Open
		case right:
			return Right
		}
		return Wrong
	}
}

func withScanner(r Report) bool { return r.answerOf("services", runsDefender) == "true" }

// throughSSH reports whether the node was reached through a real sshd with one of these default shells; none: any.
func throughSSH(shells ...string) func(Report) bool {
	return func(r Report) bool {
		if r.System.OpenSSH == "" {
			return false
		}
		shell := r.answerOf("shell", defaultShell)
		for _, s := range shells {
			if shell == s {
				return true
			}
		}
		return len(shells) == 0
	}
}

// Guesses returns all guesses, the most dangerous first.
func Guesses() []Guess {
	return []Guess{
		{"`RegFlushKey` on the key of the services puts a registration on the disk that the Service Control Manager has just made",
			"after a power cut in the middle of a push, the guardian is not there, and a node can stay without a kubelet.exe until the next contact",
			"in a VM: start a push of a kubelet, reset the VM within a second of `stopping`, look whether swdt-guardian is registered", nil},
		{"a running executable can be opened for deletion and renamed while virus scanners with a filter driver watch it",
			"each push waits 30 s and is refused",
			"the claims `running` and `push`, with Defender's real-time protection on", byClaims(withScanner, "running", "push")},
		{"the Restart Manager names a program that has a file open; handles of the kernel have no process there",
			"the result says \"a program that Windows does not name\" although Windows could",
			"the claim `held`; for a handle of the kernel: push a program that a VM or a container has mounted",
			byAnswer("held", holderNamed, "true")},
		{"while the Service Control Manager waits for a service in its handler, `ControlService` for another one fails with 1053 after 30 s; it does not deliver the control later",
			"a healthy service is asked to stop twice",
			"a service whose handler sleeps for 50 s, and `swdt push` of another one", nil},
		{"a start that fails with 1053 because the Service Control Manager waits for another service leaves the exit code of " +
			"the service as it was, and one whose process does not connect sets it to 1053",
			"a push is undone because another service hangs, or a kubelet that never connects is started three times",
			"`sc query` after `sc start` of a program that is no service, and of a good service while another one's handler sleeps", nil},
		{"a start that fails, because the process ends or does not connect within 30 s, fires no recovery action of the service",
			"Windows starts the new binary again while a push puts the old one back, and the undo waits for it",
			"`sc failure x reset= 60 actions= restart/1000` for a service whose program ends at once, then `sc start x`: " +
				"look for the events 7031 and 7034", nil},
		{"a service that was deleted while services.msc is open stays stopped, and its name gives error 1072",
			"a push fails with an error of the guardian's registration",
			"open services.msc, press F5 during a push, push again", nil},
		{"if kubelet connects to the Service Control Manager in the place of kube-log-runner (event 7039), the service keeps the " +
			"PID of kube-log-runner",
			"a push reports that the service was restarted, or kills the other process after the stop timeout",
			"`sc queryex kubelet` and `tasklist` on a node whose kubelet runs under kube-log-runner", nil},
		{"a login that a policy denies the logon over the network is accepted, and then the connection is closed before or while the first channel opens",
			"the error is about a broken connection, without the policy's name",
			"deny \"Access this computer from the network\" to the account, then `swdt status`", nil},
		{"PowerShell as default shell of sshd passes binary output and input of native programs on unchanged",
			"no contact through PowerShell",
			"the claims `shell`, `agent` and `files` with DefaultShell = powershell.exe",
			byClaims(throughSSH("powershell.exe", "pwsh.exe"), "shell", "agent", "files")},
		{"Git's bash leaves `cmd /u /c '…'` alone if `MSYS_NO_PATHCONV` and `MSYS2_ARG_CONV_EXCL` are set",
			"the first contact through Git's bash fails with a sentence",
			"the same with DefaultShell = bash.exe of Git", byClaims(throughSSH("bash.exe"), "shell", "agent", "files")},
		{"sshd sets `USERPROFILE` to the account's own profile, also if the profile was not loaded",
			"the agent is uploaded to `C:\\Users\\Default`, or refused",
			"log in with an account that has never logged in", nil},
		{"the code 4 of SFTP at the read of a new file means a scanner, if it passes within 15 s",
			"the error names an antivirus for another cause",
			"upload an EICAR file by `sftp`, and read it", nil},
		{"a service whose program Defender, AppLocker or App Control blocks fails to start with 225, 226, 1260 or 4551 of `StartService` itself",
			"the remedy is missing in the error of the push, the undo works",
			"a block rule of AppLocker for one kubelet.exe", nil},
		{"overlapped pipes as stdin and stdout, which sshd gives to a program, work with Go's runtime, as they do under Wine",
			"the agent hangs, or is slow",
			"the claims `agent`, `files` and `lost` over sshd", byClaims(throughSSH(), "agent", "files", "lost")},
		{"at a restart, the guardian hears of it before kubelet has ended (PRESHUTDOWN), or `GetSystemMetrics(SM_SHUTTINGDOWN)` says so in session 0",
			"a restart in the middle of a health check undoes a good push",
			"the claim `guardian`, with `--allow-reboot`", byAnswer("guardian", versionAfterRestart, second)},
		{"`pktmon status` prints one line without a session and more with one, and `pktmon filter list` begins the line of a " +
			"filter with its number",
			"`swdt capture` takes another person's session for none, or refuses to start",
			"both commands, with and without a session, and the exit code of a second `pktmon start`", nil},
		{"`pktmon comp list` lists the components on Server 2019",
			"`diag` has no list of them there",
			"`pktmon comp list`", nil},
		{"the services.exe of a container with process isolation has a session other than 0",
			"the boot ID changes when a container starts",
			"the claim `processes` while a container runs", byAnswer("processes", managersInSession0, "1")},
		{"wevtutil refuses a query of more than 20 expressions (the documents say 20, others saw 21 and 22)",
			"none: swdt splits earlier",
			"the claim `events`", byAnswer("events", longQueryRefused, "true")},
		{"Hyper-V calls a hibernated VM `Hibernated`, and it can be started",
			"`vm status` shows an unknown state",
			"`Get-VM` of a hibernated VM", nil},
		{"DISM disables the features that need a feature together with it, without an error",
			"`swdt setup` ends with DISM's error",
			"`dism /Online /Disable-Feature /FeatureName:Microsoft-Hyper-V` with its management tools enabled", nil},
		{"the forms of `hcsdiag list`, `exec` and `read`, the names in the JSON of vfpctrl, and which fields HNS fills in",
			"`swdt hns`, `hcs` and `capture counters` show less",
			"`hcsdiag list`, `vfpctrl /list-vmswitch-port /format 1`, and `Get-HnsEndpoint | ConvertTo-Json -Depth 9`", nil},
		{"other code pages than 850, 1252 and 866 are not guessed",
			"messages in Chinese or Japanese are printed as `\\xNN`",
			"a failing command on such a Windows", nil},
		{"the halves of a file's ID on ReFS, the codes 786 and 4581 to 4583 of App Control, 577",
			"a hash is computed again, or an error has no remedy",
			"the claim `files` on a Dev Drive", nil},
		{"the Host Network Service answers with a code of a missing network, endpoint, policy or compartment also for a namespace or " +
			"a load balancer that does not exist",
			"`swdt hns` fails if such an object vanishes while it is listed",
			"`swdt hns` in a loop while Services are made and removed", nil},
		{"at a restart, all services that accept SHUTDOWN have 5 s together (one document says about 20 s)",
			"none: swdt's services accept PRESHUTDOWN",
			"the value WaitToKillServiceTimeout of `HKLM\\SYSTEM\\CurrentControlSet\\Control`", nil},
		{"while Windows shuts down, OpenSCManager and OpenService fail with 1115 from the beginning of PRESHUTDOWN on",
			"none: the guardian waits for its end in both cases",
			"`sc query` in the shutdown script of a group policy", nil},
		{"the Host Network Service of Server 2022 has version 15.5 or newer, with which kube-proxy changes load balancers in their place",
			"the Wine sandbox shows kube-proxy changing a load balancer that Windows makes anew",
			"`Invoke-HnsRequest GET globals/version` with Microsoft's hns.psm1", nil},
	}
}

// WriteGuesses writes the guesses as a table of Markdown.
func WriteGuesses(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| # | belief | if it is wrong | how to settle it |\n|---|---|---|---|\n")
	for i, g := range Guesses() {
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", i+1, g.Belief, g.IfWrong, g.Settle)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

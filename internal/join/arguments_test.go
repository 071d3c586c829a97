package join

import "testing"

func TestArgumentsChange(t *testing.T) {
	const kubelet = `"C:\k\kube-log-runner.exe" --log-file=C:\x.log C:\k\kubelet.exe --windows-service`
	for _, test := range []struct{ before, after, want string }{
		{kubelet, kubelet + " --v=4", "with --v=4"},
		{kubelet + " --v=4", kubelet, "without --v=4"},
		{kubelet + " --v=4", kubelet + " --v=5", "--v=4 → 5"},
		{kubelet + " --a=1 --b", kubelet + " --b --a=1", "the order of its arguments"},
		{"c.exe --log-level info --run-service", "c.exe --log-level debug --run-service", "--log-level=info → debug"},
		{"nssm.exe", kubelet, `nssm.exe → C:\k\kube-log-runner.exe`},
		{kubelet, kubelet + " --a --b --c --d --e --f", "with --a, with --b, with --c, with --d and 2 more"},
	} {
		if got := argumentsChange(test.before, test.after); got != test.want {
			t.Errorf("%s → %s:\n%q, want\n%q", test.before, test.after, got, test.want)
		}
	}
}

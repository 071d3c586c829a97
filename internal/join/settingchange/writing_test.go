package settingchange_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/join/settingchange"
)

// A flag without a value is true. It changes alone, and the flag behind it stays.
func TestABareFlagChangesAlone(t *testing.T) { synctest.Test(t, testABareFlagChangesAlone) }

func testABareFlagChangesAlone(t *testing.T) {
	b := newBench(t)
	line := b.line("kube-proxy")
	with := func(flag string) string { return line + flag + " --source-vip=10.1.2.3 --v=4" }
	for _, test := range []struct{ before, wish, after, message string }{
		{" --enable-dsr", "-winkernel.enableDSR", "", "--enable-dsr: true → not set"},
		{" --enable-dsr", "winkernel.enableDSR: false", " --enable-dsr=false", "--enable-dsr: true → false"},
		{" --enable-dsr", "winkernel.enableDSR: true", " --enable-dsr", "the settings are so already"},
		{" --network-name=", "winkernel.networkName: l2", " --network-name=l2", `--network-name: "" → l2`},
	} {
		b.register("kube-proxy", with(test.before))
		result, err := b.change(kubesettings.KubeProxy, test.wish)
		if err != nil || b.line("kube-proxy") != with(test.after) {
			t.Errorf("%s: %v, %s", test.wish, err, b.line("kube-proxy"))
			continue
		}
		if got := result.Components[0].Message; !strings.Contains(got, test.message) {
			t.Errorf("%s: %s, want %s", test.wish, got, test.message)
		}
	}
	b.register("kube-proxy", with(" --enable-dsr"))
	l, err := b.read(kubesettings.KubeProxy).Fields([]string{"winkernel.enableDSR"})
	if err != nil || l.Settings[0].Value != "true" || !l.Settings[0].Set {
		t.Errorf("%+v, %v", l.Settings, err)
	}
}

// An empty text is a value.
func TestAnEmptyText(t *testing.T) { synctest.Test(t, testAnEmptyText) }

func testAnEmptyText(t *testing.T) {
	b := newBench(t)
	b.Put(configFile, []byte(header+"clusterDomain: \"\"\n"))
	l, err := b.read(kubesettings.Kubelet).Fields([]string{"clusterDomain"})
	if err != nil || l.Settings[0].Value != `""` || !l.Settings[0].Set {
		t.Errorf("%+v, %v", l.Settings, err)
	}
	result, err := b.change(kubesettings.Kubelet, "clusterDomain: example.com")
	if err != nil || !strings.Contains(result.Components[0].Message, `clusterDomain: "" → example.com`) {
		t.Errorf("%+v, %v", result.Components, err)
	}
}

// A field that no version knows can be removed from a file. One that no file has is removed already.
func TestAnUnknownFieldIsRemoved(t *testing.T) { synctest.Test(t, testAnUnknownFieldIsRemoved) }

func testAnUnknownFieldIsRemoved(t *testing.T) {
	b := newBench(t)
	b.Put(configFile, []byte(header+"maxPodz: 40\nlogging: {nonsense: {a: 1}, verbosity: 2}\n"))
	result, err := b.change(kubesettings.Kubelet, "-maxPodz", "-logging.nonsense", "-absent")
	if err != nil || string(b.Get(configFile)) != header+"logging: {verbosity: 2}\n" ||
		!strings.Contains(result.Components[0].Message, "maxPodz: 40 → not set") {
		t.Errorf("%q, %v", b.Get(configFile), err)
	}
	_, err = b.read(kubesettings.Kubelet).Fields([]string{"maxPodz"})
	if err == nil || !strings.HasPrefix(err.Error(), "read field maxPodz: kubelet 1.36 has no field maxPodz; did you mean maxPods?") {
		t.Error(err)
	}
}

// A script whose first removal takes a line away: the second one is still made in its own line.
func TestRemovalsInSeveralLinesOfAScript(t *testing.T) {
	synctest.Test(t, testRemovalsInSeveralLinesOfAScript)
}

func testRemovalsInSeveralLinesOfAScript(t *testing.T) {
	b := newBench(t)
	const (
		script = `C:\k\StartKubelet.ps1`
		text   = "$words = \"--config=C:/var/lib/kubelet/config.yaml\",\r\n" +
			"    \"--feature-gates=MemoryManager=true\",\r\n" +
			"    \"--pod-infra-container-image=registry.k8s.io/pause:3.10\",\r\n" +
			"    \"--v=2\"\r\n" +
			"# the flags of kubeadm\r\n" +
			"$more = (Get-Content C:/var/lib/kubelet/kubeadm-flags.env).Trim('\"')\r\n" +
			"Invoke-Expression (\"C:\\k\\kubelet.exe $more --image-pull-progress-deadline=5m \" + ($words -join \" \"))\r\n"
		flags = `C:\var\lib\kubelet\kubeadm-flags.env`
	)
	b.Put(script, []byte(text))
	b.Put(flags, []byte("KUBELET_KUBEADM_ARGS=\"--pod-infra-container-image=registry.k8s.io/pause:3.9\"\n"))
	b.startBy(script)
	var wishes []settingchange.Wish
	for _, name := range []string{"MemoryManager", "pod-infra-container-image", "image-pull-progress-deadline"} {
		kind := upgradecheck.FlagSetting
		if name == "MemoryManager" {
			kind = upgradecheck.GateSetting
		}
		wishes = append(wishes, settingchange.Wish{Kind: kind, Name: name, Unset: true})
	}
	result, err := b.apply(func(s *settingchange.Settings) (*settingchange.Plan, error) { return s.Plan(wishes) }, kubesettings.Kubelet)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("    \"--feature-gates=MemoryManager=true\",\r\n", "",
		"    \"--pod-infra-container-image=registry.k8s.io/pause:3.10\",\r\n", "", " --image-pull-progress-deadline=5m", "").Replace(text)
	if got := string(b.Get(script)); got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	if got := string(b.Get(flags)); got != "KUBELET_KUBEADM_ARGS=\"\"\n" {
		t.Errorf("%q", got)
	}
	for _, message := range []string{"MemoryManager: true → not set", "--pod-infra-container-image: registry.k8s.io/pause:3.10 → not set",
		"--pod-infra-container-image: registry.k8s.io/pause:3.9 → not set", "--image-pull-progress-deadline: 5m → not set"} {
		if !strings.Contains(result.Components[0].Message, message) {
			t.Errorf("%s lacks %s", result.Components[0].Message, message)
		}
	}
}

// startBy has nssm start kubelet by a script.
func (b *bench) startBy(script string) {
	b.t.Helper()
	if _, err := b.Services.Stop(b.t.Context(), &agentv1.StopServiceRequest{Name: "kubelet"}); err != nil {
		b.t.Fatal(err)
	}
	for name, value := range map[string]string{"Application": "powershell.exe", "AppParameters": `-ExecutionPolicy Bypass -File ` + script} {
		_, err := b.Registry.Set(b.t.Context(), &agentv1.RegistrySetRequest{
			Key:   `HKLM\SYSTEM\CurrentControlSet\Services\kubelet\Parameters`,
			Value: &agentv1.RegistryValue{Name: name, Type: "REG_SZ", String_: value}})
		if err != nil {
			b.t.Fatal(err)
		}
	}
	b.register("kubelet", `C:\k\nssm.exe`)
}

// The node keeps files, and no command lines: half of a change is not taken back.
func TestUndoOfFileAndCommandLine(t *testing.T) { synctest.Test(t, testUndoOfFileAndCommandLine) }

func testUndoOfFileAndCommandLine(t *testing.T) {
	b := newBench(t)
	line := b.line("kubelet")
	b.register("kubelet", line+" --max-pods=110")
	b.Put(configFile, []byte(header+"maxPods: 20\n"))
	if _, err := b.change(kubesettings.Kubelet, "-maxPods"); err != nil {
		t.Fatal(err)
	}
	undo := func(s *settingchange.Settings) (*settingchange.Plan, error) { return s.Undo(t.Context(), b.Node.Node) }
	pid := b.pid("kubelet")
	_, err := b.apply(undo, kubesettings.Kubelet)
	var none *settingchange.NothingToUndoError
	if !errors.As(err, &none) || !strings.Contains(err.Error(), "push 1 changed its command line too") {
		t.Error(err)
	}
	if string(b.Get(configFile)) != header || b.line("kubelet") != line || b.pid("kubelet") != pid {
		t.Errorf("the node was touched: %q, %s", b.Get(configFile), b.line("kubelet"))
	}
	l, err := b.read(kubesettings.Kubelet).ChangedFields(t.Context(), b.Node.Node)
	if err != nil || len(l.Settings) != 1 || l.Settings[0].Before != "20" {
		t.Errorf("%+v, %v", l.Settings, err)
	}
}

// A file with which the new version of kubelet ends is not put back.
func TestUndoOfASettingThatEndsKubelet(t *testing.T) {
	synctest.Test(t, testUndoOfASettingThatEndsKubelet)
}

func testUndoOfASettingThatEndsKubelet(t *testing.T) {
	b := newBench(t)
	b.Put(configFile, []byte(header+"userNamespaces: {idsPerPod: 65536}\n"))
	if _, err := b.change(kubesettings.Kubelet, "-userNamespaces"); err != nil {
		t.Fatal(err)
	}
	_, err := b.apply(func(s *settingchange.Settings) (*settingchange.Plan, error) { return s.Undo(t.Context(), b.Node.Node) }, kubesettings.Kubelet)
	var refused *settingchange.RefusedError
	if !errors.As(err, &refused) || string(b.Get(configFile)) != header {
		t.Errorf("%v, %q", err, b.Get(configFile))
	}
}

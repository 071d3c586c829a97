package simulated

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

const (
	systemFolder  = `C:\Windows\System32`
	profileFolder = `C:\Users\Administrator`

	// Paths and versions of the node's components.
	KubeletPath       = `C:\k\kubelet.exe`
	KubeProxyPath     = `C:\k\kube-proxy.exe`
	ContainerdPath    = `C:\Program Files\containerd\bin\containerd.exe`
	KubeletVersion    = "v1.28.4"
	ContainerdVersion = "v1.6.27"

	// cniFolder is the folder of the pod network's configuration and plugins.
	cniFolder = `C:\Program Files\containerd\cni`

	// HostsFile is Windows' hosts file.
	HostsFile = systemFolder + `\drivers\etc\hosts`
	// RemoteDesktopGroup is the firewall group of Remote Desktop.
	RemoteDesktopGroup = "@FirewallAPI.dll,-28752"
	updatePolicyKey    = `HKLM\SOFTWARE\Policies\Microsoft\Windows\WindowsUpdate\AU`
	memoryKey          = `HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management`
	hardwareKey        = `HKLM\SYSTEM\HardwareConfig`
	terminalServerKey  = `HKLM\SYSTEM\CurrentControlSet\Control\Terminal Server`
)

// install installs Windows and the preset on the machine.
func (m *Machine) install() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.installFiles()
	m.installRegistry()
	m.installFeatures()
	m.installFirewall()
	m.installServices()
	if m.options.Preset.hasNode() {
		m.installNode()
	}
	if m.options.Preset == Member {
		m.installMember()
	}
	m.disk.syncAll()
	m.flush()
}

func (m *Machine) installFiles() {
	for _, folder := range sortedKeys(presetAccess()) {
		if folder == nodeFolder && m.options.Preset == Minimal {
			continue
		}
		m.putFolder(folder)
		f, err := m.disk.find(folder, false)
		if err == nil {
			err = f.setSecurity(system(), presetAccess()[folder])
		}
		if err != nil {
			panic("simulated: preset folder " + folder + ": " + err.Error())
		}
	}
	for _, folder := range []string{
		systemFolder + `\drivers\etc`, systemFolder + `\OpenSSH`, systemFolder + `\WindowsPowerShell\v1.0`,
		`C:\Program Files`, `C:\Program Files (x86)`, `C:\ProgramData\ssh`, `C:\Windows\Temp`,
		`C:\Windows\System32\config\systemprofile`,
		profileFolder + `\.ssh`, profileFolder + `\AppData\Local\Temp`,
	} {
		m.putFolder(folder)
	}
	for _, name := range []string{"cmd", "hostname", "whoami", "ipconfig", "sc", "svchost", "wevtutil", "hcsdiag",
		"pktmon", "vfpctrl", "defrag", "mode", "ping"} {
		m.putProgram(systemFolder+`\`+name+".exe", BinarySpec{Name: name, Version: "10.0.20348.2849"})
	}
	m.putProgram(systemFolder+`\WindowsPowerShell\v1.0\powershell.exe`,
		BinarySpec{Name: "powershell", Version: "5.1.20348.2849"})
	m.putProgram(sysprepExe, BinarySpec{Name: "sysprep", Version: "10.0.20348.2849"})
	m.putProgram(systemFolder+`\OpenSSH\sshd.exe`, BinarySpec{Name: "sshd", Version: "8.1.0.1"})
	m.putFile(HostsFile, []byte("# Copyright (c) 1993-2009 Microsoft Corp.\r\n#\r\n# This is a sample HOSTS file used "+
		"by Microsoft TCP/IP for Windows.\r\n#\r\n"+
		"# localhost name resolution is handled within DNS itself.\r\n#\t127.0.0.1       localhost\r\n#\t::1          "+
		"   localhost\r\n"))
	m.putProgram(systemFolder+`\netsh.exe`, BinarySpec{Name: "netsh", Version: "10.0.20348.2849"})
}

// installRegistry sets the values that swdt, kubelet (kubernetes v1.36.3, pkg/kubelet/winstats) and kubeadm
// (k8s.io/system-validators) read.
func (m *Machine) installRegistry() {
	text := func(key, name, value string) {
		_ = m.registry.set(key, platform.RegistryValue{Name: name, Type: platform.RegistryString, String: value})
	}
	number := func(key, name string, value uint64) {
		_ = m.registry.set(key, platform.RegistryValue{Name: name, Type: platform.RegistryDWord, Integer: value})
	}
	expand := func(key, name, value string) {
		_ = m.registry.set(key, platform.RegistryValue{Name: name, Type: platform.RegistryExpandString, String: value})
	}
	text(currentVersionKey, "ProductName", "Windows Server 2022 Datacenter")
	text(currentVersionKey, "CurrentVersion", "6.3")
	text(currentVersionKey, "CurrentBuild", "20348")
	text(currentVersionKey, "CurrentBuildNumber", "20348")
	number(currentVersionKey, "CurrentMajorVersionNumber", 10)
	number(currentVersionKey, "CurrentMinorVersionNumber", 0)
	number(currentVersionKey, "UBR", 2849)
	text(servicingKey, "Version", "10.0.20348.2849")
	m.installServicing()
	number(terminalServerKey, "fDenyTSConnections", 1)
	number(updatePolicyKey, "NoAutoUpdate", 1)
	_ = m.registry.set(memoryKey, platform.RegistryValue{Name: "PagingFiles", Type: platform.RegistryMultiString,
		Strings: []string{`?:\pagefile.sys`}})
	text(hardwareKey, "LastConfig", newUUID())
	text(machineGUIDKey, machineGUID, strings.Trim(newUUID(), "{}"))
	text(setupStateKey, imageState, imageComplete)
	expand(environmentKey, "Path",
		`%SystemRoot%\system32;%SystemRoot%;%SystemRoot%\System32\Wbem;`+
			`%SYSTEMROOT%\System32\WindowsPowerShell\v1.0\;%SYSTEMROOT%\System32\OpenSSH\`)
	expand(environmentKey, "ComSpec", `%SystemRoot%\system32\cmd.exe`)
	expand(environmentKey, "TEMP", `%SystemRoot%\TEMP`)
	expand(environmentKey, "windir", `%SystemRoot%`)
	text(environmentKey, "OS", "Windows_NT")
	text(environmentKey, "PATHEXT", ".COM;.EXE;.BAT;.CMD")
	text(environmentKey, "PROCESSOR_ARCHITECTURE", strings.ToUpper(m.options.Architecture))
	text(`HKLM\SOFTWARE\OpenSSH`, "DefaultShell", systemFolder+`\cmd.exe`)
	text(`HKCU\Environment`, "TEMP", profileFolder+`\AppData\Local\Temp`)
}

func (m *Machine) installFeatures() {
	on := m.options.Preset.hasNode()
	add := func(name string, enabled, reboot bool, needs ...string) {
		state := platform.FeatureDisabled
		if enabled {
			state = platform.FeatureEnabled
		}
		m.features[fold(name)] = &feature{name: name, state: state, reboot: reboot, needs: needs}
	}
	add("Containers", on, true)
	add("Microsoft-Hyper-V", false, true)
	add("Microsoft-Hyper-V-Management-PowerShell", false, false, "Microsoft-Hyper-V")
	add("VirtualMachinePlatform", false, true)
	add("TelnetClient", false, false)
	add("Windows-Defender", true, true)
	add("SMB1Protocol", false, true)
}

// installFirewall adds some of Windows' rules; published exports of the registry have the names of those of Remote Desktop.
func (m *Machine) installFirewall() {
	rule := func(name, group, protocol, ports string, enabled bool) {
		m.firewall = append(m.firewall, platform.FirewallRule{
			Name: name, Group: group, Enabled: enabled, Inbound: true, Allow: true,
			Protocol: protocol, Ports: ports, Profiles: "any",
		})
	}
	rule("@FirewallAPI.dll,-28775", RemoteDesktopGroup, "tcp", "3389", false) // user mode, TCP-In
	rule("@FirewallAPI.dll,-28776", RemoteDesktopGroup, "udp", "3389", false) // user mode, UDP-In
	rule("@FirewallAPI.dll,-28778", RemoteDesktopGroup, "tcp", "", false)     // shadow, TCP-In
	rule("OpenSSH SSH Server (sshd)", "OpenSSH Server", "tcp", "22", true)
	rule("@FirewallAPI.dll,-28543", "@FirewallAPI.dll,-28502", "icmpv4", "", false) // echo request
}

func (m *Machine) installServices() {
	shared := func(name, display string, start platform.StartType, dependencies ...string) {
		s := m.addService(platform.ServiceConfig{
			Name: name, DisplayName: display, CommandLine: `C:\Windows\System32\svchost.exe -k netsvcs -p`,
			StartType: start, Dependencies: dependencies,
		})
		s.shared = true
	}
	shared("RpcSs", "Remote Procedure Call (RPC)", platform.StartAuto)
	shared("EventLog", "Windows Event Log", platform.StartAuto)
	shared("TermService", "Remote Desktop Services", platform.StartManual, "RpcSs")
	shared("UmRdpService", "Remote Desktop Services UserMode Port Redirector", platform.StartManual, "TermService")
	shared("W32Time", "Windows Time", platform.StartAuto)
	m.addService(platform.ServiceConfig{
		Name: "sshd", DisplayName: "OpenSSH SSH Server", CommandLine: systemFolder + `\OpenSSH\sshd.exe`,
		StartType: platform.StartAuto,
	})
}

// installNode adds containerd, kubelet and kube-proxy as image-builder does: the folders, the rule of the firewall and the
// dependency of kubelet (kubernetes-sigs/image-builder, images/capi/ansible/windows/roles/kubernetes/tasks/kubelet.yml).
// Its recovery actions and the range of dynamic ports are examples.
func (m *Machine) installNode() {
	m.putProgram(ContainerdPath, BinarySpec{Name: "containerd", Version: ContainerdVersion, Size: 96 << 10})
	m.putProgram(KubeletPath, BinarySpec{Name: "kubelet", Version: KubeletVersion, Size: 128 << 10})
	m.putProgram(KubeProxyPath, BinarySpec{Name: "kube-proxy", Version: KubeletVersion, Size: 64 << 10})
	m.installDrivers()
	for _, folder := range []string{`C:\var\log\kubelet`, `C:\var\lib\kubelet\etc\kubernetes`, `C:\etc\kubernetes\pki`,
		`C:\etc\kubernetes\manifests`} {
		m.putFolder(folder)
	}
	m.putFile(`C:\Program Files\containerd\config.toml`, []byte("version = 2\n"))
	m.putFile(`C:\var\lib\kubelet\config.yaml`,
		[]byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"))
	m.installPodNetwork()
	m.putFile(cniFolder+`\conf\10-calico.conf`,
		[]byte(`{"name": "Calico", "cniVersion": "0.3.1", "type": "calico", "ipam": {"type": "calico-ipam"}}`+"\n"))
	for _, plugin := range []string{"calico", "calico-ipam"} {
		m.putProgram(cniFolder+`\bin\`+plugin+".exe", BinarySpec{Name: plugin, Version: "v3.27.0"})
	}
	m.ip.dynamicFirst, m.ip.dynamicCount = 34000, 31536
	m.firewall = append(m.firewall, platform.FirewallRule{
		Name: "kubelet", Enabled: true, Inbound: true, Allow: true, Protocol: "tcp", Ports: "10250", Profiles: "any",
	})
	recovery := func(delay time.Duration) *platform.Recovery {
		return &platform.Recovery{Restarts: []time.Duration{delay, delay, delay}, RepeatLast: true, Reset: time.Hour}
	}
	m.addService(platform.ServiceConfig{
		Name: "containerd", StartType: platform.StartAuto, Recovery: recovery(10 * time.Second),
		CommandLine: `"` + ContainerdPath + `" --run-service --config "C:\Program Files\containerd\config.toml" ` +
			`--log-file C:\var\log\containerd\containerd.log`,
	})
	m.addService(platform.ServiceConfig{
		Name: "kubelet", StartType: platform.StartAuto, Dependencies: []string{"containerd"},
		Recovery: recovery(10 * time.Second),
		CommandLine: KubeletPath + ` --windows-service --config=/var/lib/kubelet/config.yaml ` +
			`--container-runtime-endpoint=npipe:////./pipe/containerd-containerd --cgroups-per-qos=false ` +
			`--enforce-node-allocatable= --resolv-conf=`,
	})
	m.addService(platform.ServiceConfig{
		Name: "kube-proxy", StartType: platform.StartAuto, Recovery: recovery(10 * time.Second),
		CommandLine: KubeProxyPath + ` --windows-service --proxy-mode=kernelspace ` +
			`--log-file=C:/var/log/kube-proxy/kube-proxy.log`,
	})
}

// The control plane of a Member. The node sees only a name and a port that can be reached: the
// kubelet is not configured for this control plane and works without one.
const (
	memberServer  = "control-plane.example"
	memberAddress = "10.0.0.1"
	memberConf    = `apiVersion: v1
kind: Config
clusters:
- name: example
  cluster:
    server: https://` + memberServer + `:6443
contexts:
- name: node
  context: {cluster: example, user: node}
current-context: node
users:
- name: node
  user: {}
`
)

// installMember adds the state that a join and its administrator leave on a
// node.
func (m *Machine) installMember() {
	const logRunner = `C:\k\kube-log-runner.exe`
	m.putProgram(logRunner, BinarySpec{Name: "kube-log-runner", Version: KubeletVersion})
	kubelet := m.services[fold("kubelet")]
	kubelet.config.CommandLine = logRunner + ` --log-file=C:\var\log\kubelet\kubelet.log ` + kubelet.config.CommandLine
	m.putFile(`C:\etc\kubernetes\kubelet.conf`, []byte(memberConf))
	m.around.names[memberServer] = []string{memberAddress}
	m.around.outcomes[memberAddress+":6443"] = platform.Reached
}

// hasNode reports whether the components of a node are installed.
func (p Preset) hasNode() bool { return p == Node || p == Member }

// putFolder makes a folder with its parents. If swdt's folder is one of them, putFolder makes it
// with the access list that swdt gives it.
func (m *Machine) putFolder(path string) {
	if strings.HasPrefix(fold(path)+`\`, fold(layout.Root)+`\`) {
		_ = m.disk.newFolder(system(), layout.Root, access.SafeFolder) // fails if the folder exists, which is fine
	}
	if err := m.disk.makeFolder(system(), path); err != nil {
		panic("simulated: preset folder " + path + ": " + err.Error())
	}
}

func (m *Machine) putProgram(path string, spec BinarySpec) {
	spec.Machine = m.options.Architecture
	m.putFile(path, Binary(spec))
}

// putFile writes a file, creates its folders if needed, and replaces an existing file; the caller
// holds the lock.
func (m *Machine) putFile(path string, data []byte) {
	parts, _, err := splitPath(path)
	if err != nil || len(parts) == 0 {
		return
	}
	m.putFolder(systemDrive + `\` + strings.Join(parts[:len(parts)-1], `\`))
	folder, name, err := m.disk.slot(path)
	if err != nil {
		return
	}
	f := folder.children[fold(name)]
	if f == nil {
		if f, err = m.disk.create(system(), folder, name, false, ""); err != nil {
			return
		}
	}
	m.disk.truncate(f, 0)
	_, _ = m.disk.write(f, data)
	f.synced = f.content.size
}

// newUUID returns a random UUID in braces.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // rand.Read never fails
	return fmt.Sprintf("{%x-%x-%x-%x-%x}", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

package logline_test

import (
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/format/logline"
)

// Lines of the programs of nodes, in the form that the named sources show, with other values.
func TestHeads(t *testing.T) {
	zone := time.FixedZone("node", 3600)
	written := time.Date(2026, 11, 29, 12, 0, 0, 0, zone)
	utc := time.Date(2026, 11, 29, 1, 50, 5, 0, time.UTC)
	local := time.Date(2026, 11, 29, 1, 50, 5, 0, zone)
	none := time.Time{}
	for _, c := range []struct {
		line  string
		time  time.Time
		level logline.Level
	}{
		// klog, alone and behind what wraps it
		{`E1129 01:50:05.000000    3560 x.go:59] failed at 2026-03-15T10:00:00Z`, local, logline.Error},
		{`kube-proxy.exe : E1129 01:50:05.000000    3560 x.go:59] failed`, local, logline.Error},
		{`C:\k\kube-proxy.exe : W1129 01:50:05.000000    3560 x.go:59] failed`, local, logline.Warning},
		{`"C:\Program Files\k\kubelet.exe" : F1129 01:50:05.000000    3560 x.go:59] failed`, local, logline.Fatal},
		{`[kubelet] I1129 01:50:05.000000    3560 x.go:59] ok`, local, logline.Info},
		{`could not start, see: E1129 01:50:05.000000    3560 x.go:59] failed`, none, logline.Unknown},
		{`Nov 29 01:50:05 node-1 kubelet[42]: E1129 01:50:04.000000    3560 x.go:59] failed`, local, logline.Error},
		{`2026-11-29T01:50:05Z node-1 kubelet[42]: W1129 01:50:04.000000    3560 x.go:59] failed`, utc, logline.Warning},
		{`I0115 14:29:59.123456    1234 server.go:1] old`, time.Date(2026, 1, 15, 14, 29, 59, 123456000, zone), logline.Info},
		{`I1201 14:29:59.123456    1234 server.go:1] old`, time.Date(2025, 12, 1, 14, 29, 59, 123456000, zone), logline.Info},
		{`I0229 14:29:59.000000    1234 server.go:1] old`, time.Date(2024, 2, 29, 14, 29, 59, 0, zone), logline.Info},
		// logrus, zap, klog and other structured logs
		{`time="2026-11-29T01:50:05Z" level=warning msg="x" time="2019-11-29T01:50:05Z"`, utc, logline.Warning},
		{`error="x" level=error msg="level=info time=\"y\"" time="2026-11-29T01:50:05Z"`, utc, logline.Error},
		{`level=info ts=2026-11-29T01:50:05.000Z caller=main.go:1 msg=x`, utc, logline.Info},
		{`t=2026-11-29T01:50:05+0000 lvl=eror msg=x`, utc, logline.Error},
		{`{"error":"x","level":"error","msg":"time","time":"2026-11-29T01:50:05.000000000Z"}`, utc, logline.Error},
		{`{"a":{"time":"2019-01-01T00:00:00Z","level":"info"},"b":["}",{"ts":1}],"level":"fatal","ts":1795917005}`, utc,
			logline.Fatal},
		{`{"msg":"\"time\":\"2019-01-01T00:00:00Z\"","level":"warn","ts":1795917005.0}`, utc, logline.Warning},
		{`{"level":50,"time":1795917005000,"msg":"x"}`, utc, logline.Error},
		{`{"@t":"2026-11-29T01:50:05Z","@mt":"x","@l":"Error"}`, utc, logline.Error},
		{`{"ts":1795917005000.0,"caller":"x.go:1","msg":"m","err":"bad"}`, utc, logline.Error},
		{`{"kind":"Status","message":"no time"}`, none, logline.Unknown},
		{`{0xc000 2026-11-29T01:50:05Z}`, none, logline.Unknown},
		{"2026-11-29T01:50:05.000Z\tERROR\tcontroller.x\tReconciler error\t{\"error\": \"x\"}", utc, logline.Error},
		{"1.795917005e+09\tINFO\tsetup\tstarting manager", utc, logline.Info},
		{"1795917005.000\tdebug\tx", utc, logline.Debug},
		{"\x1b[31mERRO\x1b[0m[2026-11-29T01:50:05Z] failed", utc, logline.Error},
		{"WARN[0012] behind", none, logline.Warning},
		{"2026-11-29T01:50:05.000Z\t\x1b[34mINFO\x1b[0m\tsetup\tstarting", utc, logline.Info},
		// Go's package log
		{`2026/11/29 01:50:05 [4640] Formatted Boot time: 2026-11-28 23:14:13`, local, logline.Unknown},
		{`2026/11/29 01:50:05.000000 main.go:12: started`, local, logline.Unknown},
		{`2026/11/29 01:50:05 [error] 12#0: *1 open() failed`, local, logline.Error},
		{`[2026/11/29 01:50:05] [ warn] [engine] failed to flush chunk`, local, logline.Warning},
		// Python, log4net, NLog, Serilog, Calico, Open vSwitch
		{`2026-11-29 01:50:05.000 1234 ERROR cloudbaseinit.init [-] Plugin failed`, local, logline.Error},
		{`2026-11-29 01:50:05,000 - root - CRITICAL - text`, local, logline.Fatal},
		{`2026-11-29 01:50:05,000 ERROR - Child process ended with 1`, local, logline.Error},
		{`2026-11-29 01:50:05,000 [12] WARN  Some.Logger (null) - text`, local, logline.Warning},
		{`2026-11-29 01:50:05.0000|ERROR|Some.Logger|text`, local, logline.Error},
		{`2026-11-29 01:50:05.000 +01:00 [ERR] text`, local, logline.Error},
		{`2026-11-29 01:50:05.000 [ERROR][123] felix/x.go 1: text`, local, logline.Error},
		{`2026-11-29T01:50:05.000Z|00001|vlog(main)|WARN|opened`, utc, logline.Warning},
		{`fail: Microsoft.AspNetCore.Server.Kestrel[13]`, none, logline.Error},
		// IIS and http.sys write in UTC; NCSA's form has its zone
		{`2026-11-29 01:50:05 10.0.0.4 GET /healthz - 80 - 10.0.0.1 kube-probe/1.30 - 200 0 0 15`, utc, logline.Unknown},
		{`2026-11-29 01:50:05 W3SVC1 WEB-0 10.0.0.4 GET / - 80 - ::1 - 200`, utc, logline.Unknown},
		{`2026-11-29 01:50:05 fe80::1%4 51234 fe80::2%4 80 HTTP/1.1 GET / - 503 1 QueueFull DefaultAppPool`, utc,
			logline.Unknown},
		{`10.0.0.1 - alice [29/Nov/2026:02:50:05 +0100] "GET / HTTP/1.1" 200 12`, utc, logline.Unknown},
		{`#Date: 2026-11-29 01:50:05`, none, logline.Unknown},
		// syslog and C
		{`<11>Nov 29 01:50:05 node-1 app: text`, local, logline.Error},
		{`<12>1 2026-11-29T01:50:05Z node-1 app 42 - - text`, utc, logline.Warning},
		{`[Sun Nov 29 01:50:05.000000 2026] [core:error] [pid 12] text`, local, logline.Error},
		// Windows' own
		{`11/29/2026 1:50:05 AM 0B5C PACKET  text`, local, logline.Unknown},
		{`11/29/2026 01:50:05:000 NetpDoDomainJoin`, local, logline.Unknown},
		{`29.11.2026 01:50:05 gestartet`, local, logline.Unknown},
		{`2026-11-29 01:50:05, Error                 CBS    Failed to resolve`, local, logline.Error},
		{`2026-11-29 01:50:05 ALLOW TCP 10.0.0.4 10.0.0.1 1 2 0 - 0 0 0 - - - SEND`, local, logline.Unknown},
		{`4242 2026-11-29 01:50:05.000 error: kex_exchange_identification: read`, local, logline.Error},
		{`2026-11-29T01:50:05Z E! [outputs] text`, utc, logline.Error},
		// crashes
		{`panic: runtime error: index out of range`, none, logline.Fatal},
		{`fatal error: all goroutines are asleep - deadlock!`, none, logline.Fatal},
		{`Exception 0xc0000005 0x0 0x0 0x7ffb`, none, logline.Fatal},
		{`kubelet.exe : panic: dead`, none, logline.Fatal},
		{`Unhandled Exception: System.IO.IOException: x`, none, logline.Fatal},
		// of public reports, each with its source
		// kubernetes/kubernetes#88913: a panic that the kubelet survives
		{`E1129 01:50:05.000000    3564 runtime.go:78] Observed a panic: "invalid memory address"`, local, logline.Error},
		{`goroutine 206 [running]:`, none, logline.Unknown},
		{`panic(0x38ac960, 0x6b90c30)`, none, logline.Unknown},
		// kubernetes-sigs/sig-windows-tools#85: the header of klog's files
		{`Log file created at: 2026/11/29 01:50:05`, none, logline.Unknown},
		{`Log line format: [IWEF]mmdd hh:mm:ss.uuuuuu threadid file:line] msg`, none, logline.Unknown},
		// kubernetes/kubernetes#78925, kubernetes/minikube#7335: traces behind syslog's head
		{`Nov 29 01:50:05 worker-d0 kubelet[8804]: panic: dead`, local, logline.Fatal},
		{`Nov 29 01:50:05 worker-d0 kubelet[8804]:         /usr/local/go/src/runtime/panic.go:616 +0x81`, local, logline.Unknown},
		{`runtime: panic before malloc heap initialized`, none, logline.Fatal},
		// MicrosoftDocs/Virtualization-Documentation#944, flannel-io/flannel#957: flanneld in a console
		{`I1129 01:50:05.000000     684 main.go:417] Searching for interface using 10.0.0.4`, local, logline.Info},
		{`    + CategoryInfo          : NotSpecified: (I1129 01:50:05.0...] text:String) [], RemoteException`, none, logline.Unknown},
		// Azure/azure-container-networking#642
		{`2026/11/29 01:50:05 [4640] [cni-net] Failed to initialize network manager, err:invalid character '\x00'`, local,
			logline.Unknown},
		// projectcalico/cni-plugin#1001, projectcalico/calico#5005: an error in a message is not the level
		{`2026-11-29 01:50:05.000 [INFO][9] startup/customresource.go 101: Error getting resource error=x`, local, logline.Info},
		// rancher/rke2#4722, #7440: the event log of rke2, as PowerShell prints it
		{`11/29/2026 1:50:05 AM Calico exited: exit status 1`, local, logline.Unknown},
		{`                     CALICO_K8S_NODE_REF=win CALICO_LOG_DIR= DNS_NAME_SERVERS=10.43.0.10`, none, logline.Unknown},
		// rancher/rancher#16308: logrus on a terminal, without a clock
		{`INFO[1226] {"status":"Status: Downloaded newer image"}`, none, logline.Info},
		// eksctl-io/eksctl#2721: Amazon's resource controller
		{"2026-11-29T01:50:05.000Z [INFO] \tInitializing vpc-resource-controller version 0.2.3.", utc, logline.Info},
		// winsw/winsw#123, #139: the wrapper's log before log4net
		{`2026-11-29 01:50:05 - Starting consul.exe agent -config-file consul.conf`, local, logline.Unknown},
		// learn.microsoft.com cc738725: W3C of IIS 6.0; greatmanuals.com: IIS' own format
		{`2026-11-29 01:50:05 172.22.255.255 - 172.30.255.255 80 GET /images/picture.jpg - 200 Mozilla/4.0`, utc, logline.Unknown},
		{`#Fields: date time c-ip cs-username s-ip s-port cs-method cs-uri-stem cs-uri-query sc-status`, none, logline.Unknown},
		{`192.168.114.201, -, 11/29/26, 1:50:05, W3SVC2, SALES1, 172.21.13.45, 4502, 163, 3223, 200, 0, GET, /a.htm, -,`, local,
			logline.Unknown},
		// kubernetes-sigs/cluster-api-provider-azure#1932: ETW of containerd and of the shim, as JSON
		{`{"Timestamp":"2026-11-29T01:50:05.0000000+00:00","ProviderName":"ContainerD","Level":2,"Payload":{"Level":4}}`, utc,
			logline.Error},
		// microsoft/hcsshim#674: a document of HCS in containerd's message
		{`time="2026-11-29T01:50:05.000000000Z" level=debug msg="Network Response : {\"LastUpdateTime\":132108987224769239}"`, utc,
			logline.Debug},
		// kubernetes/kubernetes#67827: kube-proxy dumps structs over many lines
		{`I1129 01:50:05.000000    4740 proxier.go:111] Endpoint resource found, (*winkernel.endpointsInfo)(0xc042b3a780)({`, local,
			logline.Info},
		{` ip: (string) (len=10) "10.244.1.5",`, none, logline.Unknown},
		{`})`, none, logline.Unknown},
		// Azure/azure-container-networking#2184: the plugin's log since 2023
		{`{"level":"info","ts":"2026-11-29T01:50:05.000Z","msg":"[cni-net] DEL command completed","pid":1193955}`, utc, logline.Info},
		// allinurl/goaccess#1010: Logback with a host
		{`Nov 29 01:50:05 LAPTOP-1 INFO ComboDescriptionCell - ComboBox is going to be shown`, local, logline.Info},
		// prometheus-community/windows_exporter: slog
		{`time=2026-11-29T01:50:05.000Z level=ERROR source=main.go:12 msg="failed"`, utc, logline.Error},
		// kubernetes-sigs/sig-windows-tools#377: PowerShell's errors in a pod's log
		{`Get-Content : Cannot find path 'C:\hpc\kubeconfig.conf' because it does not exist.`, none, logline.Unknown},
		{`At C:\hpc\kube-proxy\start.ps1:56 char:3`, none, logline.Unknown},
		// dates and levels within messages
		{`  Not After : 2027-11-29T01:00:00Z`, none, logline.Unknown},
		{`Boot time: 2026-11-28 23:14:13`, none, logline.Unknown},
		{`notAfter=2027-11-29T01:00:00Z`, none, logline.Unknown},
		{`    "time": "2026-11-28T23:14:13Z",`, none, logline.Unknown},
		{`the ERROR is not one`, none, logline.Unknown},
		{`2026-11-29T01:50:05Z some text about an ERROR`, utc, logline.Unknown},
		{`0001-01-01T00:00:00Z`, none, logline.Unknown},
		{`10.0.20348.2849`, none, logline.Unknown},
	} {
		got := logline.Parse([]byte(c.line), written)
		if !got.Time.Equal(c.time) || got.Level != c.level {
			t.Errorf("%q: %v %q, want %v %q", c.line, got.Time, got.Level, c.time, c.level)
		}
	}
}

// A date before prose is a line's time, unless the log has another format and the date does not continue it.
func TestReaderRemembersTheFormat(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		lines []string
		want  []string // the clock of each line
	}{
		"a log of its own":     {[]string{"2026-11-29 01:00:00 a", "2026-11-29 01:10:00 b"}, []string{"01:00", "01:10"}},
		"in klog, of old":      {[]string{"I1129 01:20:00.0 1 x.go:1] a", "2026-11-29 01:10:00 b"}, []string{"01:20", "01:20"}},
		"in klog, far ahead":   {[]string{"I1129 01:20:00.0 1 x.go:1] a", "2027-11-29 01:30:00 b"}, []string{"01:20", "01:20"}},
		"a script of services": {[]string{"I1129 01:20:00.0 1 x.go:1] a", "2026-11-29 01:30:00 b"}, []string{"01:20", "01:30"}},
		"two formats": {[]string{"2026/11/29 01:20:00 [1] a", `{"level":"info","ts":"2026-11-29T01:25:00Z"}`, "  b"},
			[]string{"01:20", "01:25", "01:25"}},
	} {
		r := logline.Reader{Written: now}
		for i, line := range c.lines {
			if got := r.Line([]byte(line)).Time.Format("15:04"); got != c.want[i] {
				t.Errorf("%s: line %d is of %s, want %s", name, i, got, c.want[i])
			}
		}
	}
}

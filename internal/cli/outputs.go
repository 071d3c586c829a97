package cli

import (
	"github.com/swdt-dev/swdt/internal/cluster/lint"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/config/trust"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/day0/overview"
	"github.com/swdt-dev/swdt/internal/day0/up"
	"github.com/swdt-dev/swdt/internal/inspect/attach"
	"github.com/swdt-dev/swdt/internal/inspect/capture"
	"github.com/swdt-dev/swdt/internal/inspect/comparison"
	"github.com/swdt-dev/swdt/internal/inspect/diag"
	"github.com/swdt-dev/swdt/internal/inspect/doctor"
	"github.com/swdt-dev/swdt/internal/inspect/hang"
	"github.com/swdt-dev/swdt/internal/inspect/hcs"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/inspect/imagecheck"
	"github.com/swdt-dev/swdt/internal/inspect/imagepull"
	"github.com/swdt-dev/swdt/internal/inspect/logs"
	"github.com/swdt-dev/swdt/internal/inspect/owners"
	"github.com/swdt-dev/swdt/internal/inspect/programmed"
	"github.com/swdt-dev/swdt/internal/inspect/services"
	"github.com/swdt-dev/swdt/internal/inspect/stats/monitor"
	"github.com/swdt-dev/swdt/internal/inspect/stats/report"
	"github.com/swdt-dev/swdt/internal/inspect/stats/soak"
	"github.com/swdt-dev/swdt/internal/join/bake"
	"github.com/swdt-dev/swdt/internal/join/objectfix"
	"github.com/swdt-dev/swdt/internal/join/podnetwork"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/join/settingchange"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/node/agentbin/buildinfo"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/node/criproxy"
	"github.com/swdt-dev/swdt/internal/node/portforward"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/node/transfer/patchfile"
	"github.com/swdt-dev/swdt/internal/obtain/publish"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/proof/netpol"
	"github.com/swdt-dev/swdt/internal/proof/readiness"
	"github.com/swdt-dev/swdt/internal/proof/scale"
	"github.com/swdt-dev/swdt/internal/proof/selftest"
	"github.com/swdt-dev/swdt/internal/proof/trial"
	"github.com/swdt-dev/swdt/internal/proof/verdict"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/rollout/installation"
	"github.com/swdt-dev/swdt/internal/rollout/manage"
	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/trace"
	"github.com/swdt-dev/swdt/internal/ui/result"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/golden"
	"github.com/swdt-dev/swdt/internal/vm/media"
)

// outputs declares what each command prints. The keys are the commands' names without swdt. A test
// fails for a command that is missing in outputs, since the command would have no schema.
func outputs() map[string]output {
	none := output{}
	yaml, json := output{formats: []string{result.YAML}}, output{formats: []string{result.JSON}}
	steps := output{document: plan.Report{}}
	vms := output{document: vm.Reports{}}
	gates := output{document: settingchange.Report{}, columns: settingchange.GateColumns, wide: true}
	fields := output{document: settingchange.Report{}, columns: settingchange.FieldColumns, wide: true}
	changes := output{document: settingchange.Report{}, columns: settingchange.ChangeColumns}
	answer := output{document: criclient.Report{}}
	return map[string]output{
		"":      {document: buildinfo.Build{}}, // --version
		"setup": steps,

		"up":   {document: up.Report{}},
		"down": {document: up.Report{}},

		"cluster init": yaml,
		"cluster create": {document: kindcluster.Report{},
			modes: []mode{{flags: "--dry-run", document: kindcluster.Plan{}}}},
		"cluster delete": {document: kindcluster.Report{}},
		"cluster check": {document: smoke.Report{}, columns: smoke.Columns, oneTable: true, wide: true,
			modes: []mode{{flags: "--dry-run", document: smoke.Plan{}}}},
		"cluster status":     {document: kindcluster.Report{}},
		"cluster kubeconfig": yaml,

		"join": {document: plan.Report{},
			modes: []mode{{flags: "--preflight", document: preflight.FleetReport{}}}},
		"reset":        steps,
		"upgrade node": steps,
		"upgrade check": {document: upgradecheck.Report{}, wide: true,
			modes: []mode{{flags: "--fix", document: objectfix.Report{}}}},
		"lint": {document: lint.Report{}, wide: true, formats: lintFormats()},
		"push": {document: push.Report{},
			modes: []mode{{flags: "--watch", document: push.NodeResult{}, records: true}}},
		"rollback": {document: push.Report{}},
		"history":  {document: push.HistoryReport{}, columns: push.HistoryColumns, wide: true},
		"restart":  {document: push.Report{}},
		"status": {document: push.StatusReport{}, columns: push.StatusColumns, wide: true,
			modes: []mode{{flags: "-c CLUSTER", document: overview.Report{}}, {flags: "--watch", document: push.NodeStatus{}, records: true}}},

		"kubelet config get":        fields,
		"kubelet config set":        {document: push.Report{}},
		"kubelet config unset":      {document: push.Report{}},
		"kubelet config diff":       changes,
		"kubelet config undo":       {document: push.Report{}},
		"kubelet features get":      gates,
		"kubelet features set":      {document: push.Report{}},
		"kubelet features unset":    {document: push.Report{}},
		"kubelet features diff":     gates,
		"kube-proxy config get":     fields,
		"kube-proxy config set":     {document: push.Report{}},
		"kube-proxy config unset":   {document: push.Report{}},
		"kube-proxy config diff":    changes,
		"kube-proxy config undo":    {document: push.Report{}},
		"kube-proxy features get":   gates,
		"kube-proxy features set":   {document: push.Report{}},
		"kube-proxy features unset": {document: push.Report{}},
		"kube-proxy features diff":  gates,

		"top":        {document: owners.LoadReport{}, columns: owners.LoadHeader},
		"services":   {document: services.Report{}, columns: services.Columns},
		"exec":       none,
		"shell":      none,
		"powershell": none,
		"forward":    {document: portforward.Report{}},
		"rdp":        {document: portforward.Report{}},
		"attach":     {document: attach.Report{}},
		"cp":         {document: transfer.CopyReport{}},
		"logs":       {document: logs.Line{}, records: true},
		"logs list":  {document: logs.Report{}, columns: logs.Columns},
		"events":     {document: logs.Line{}, records: true},
		"capture": {document: capture.Record{}, records: true,
			modes: []mode{{flags: "-w FILE", document: capture.Report{}}}},
		"capture fetch":    {document: capture.Report{}},
		"capture counters": answer,
		"capture vfp":      answer,
		"ps": {document: owners.Report{}, columns: owners.Header, wide: true,
			modes: []mode{{flags: "--watch", document: owners.NodeReport{}, records: true}}},

		"hns networks":      {document: hns.Networks().Document, columns: hns.Networks().Columns, wide: true},
		"hns endpoints":     {document: hns.Endpoints().Document, columns: hns.Endpoints().Columns, wide: true},
		"hns loadbalancers": {document: hns.LoadBalancers().Document, columns: hns.LoadBalancers().Columns, wide: true},
		"hns namespaces":    {document: hns.Namespaces().Document, columns: hns.Namespaces().Columns, wide: true},
		"hns policies":      {document: hns.Policies().Document, columns: hns.Policies().Columns, wide: true},
		"hns graph":         {formats: []string{graphSVG}},
		"hcs list":          {document: hcs.Report{}, columns: hcs.Columns, wide: true},
		"hcs read":          none,
		"hcs exec":          none,
		"hcs kill":          {document: hcs.KillReport{}},
		"hns remove":        {document: hns.RemoveReport{}},

		"cri proxy":      {document: criproxy.Endpoints{}},
		"cri env":        {document: criproxy.Environment{}},
		"cri version":    answer,
		"cri status":     answer,
		"cri pods":       {document: criclient.Report{}, columns: criclient.PodColumns, wide: true},
		"cri containers": {document: criclient.Report{}, columns: criclient.ContainerColumns, wide: true},
		"cri images":     {document: criclient.Report{}, columns: criclient.ImageColumns, wide: true},
		"cri stats":      {document: criclient.Report{}, columns: criclient.StatsColumns, wide: true},
		"stats watch":    {document: monitor.Sample{}, records: true, formats: []string{formatCSV}},
		"stats compare":  {document: report.Comparison{}},
		"stats soak":     {document: soak.Report{}, columns: soak.Columns, oneTable: true, wide: true},
		"stats report":   {document: report.Written{}},
		"stats serve":    {formats: []string{result.Text}},
		"trace on":       steps,
		"trace off":      steps,
		"trace status":   {document: trace.Report{}},
		"doctor": {document: doctor.FleetReport{}, wide: true,
			modes: []mode{{flags: "--list-rules", document: doctor.RuleList{}}}},
		"doctor compare": {document: comparison.Report{}, wide: true},
		"diag":           {document: diag.Report{}},
		"diag dump":      {document: hang.Report{}},
		"diag dump show": {document: hang.Report{}, modes: []mode{{flags: "FILE OTHER", document: hang.Comparison{}}}},
		"diag show": {document: diag.Manifest{}, modes: []mode{
			{flags: "BUNDLE NODE", document: diag.NodeReport{}},
			{flags: "BUNDLE NODE TABLE", document: diag.TableReport{}},
		}},

		"vm check":            {document: vm.Checks{}},
		"vm create":           {document: vm.Reports{}, modes: []mode{{flags: "--dry-run", document: vm.Plans{}}}},
		"vm delete":           vms,
		"vm start":            vms,
		"vm stop":             vms,
		"vm restart":          vms,
		"vm list":             {document: vm.Reports{}, columns: vm.Columns, oneTable: true, wide: true},
		"vm status":           vms,
		"vm snapshot save":    vms,
		"vm snapshot restore": vms,
		"vm snapshot list":    {document: vm.SnapshotList{}, columns: vm.SnapshotColumns, oneTable: true},
		"vm snapshot remove":  vms,
		"vm address":          {document: vm.AddressList{}, columns: vm.AddressColumns, oneTable: true},
		"vm console":          {document: vm.ConsoleList{}},
		"vm screenshot":       {document: vm.Screen{}},
		"vm keys":             {document: vm.Pressed{}},
		"vm network check":    {document: vm.NetworkChecks{}},
		"vm network prepare":  {document: vm.NetworkSteps{}},
		"vm network remove":   {document: vm.NetworkSteps{}},
		"vm image inspect":    {document: media.Report{}},
		"vm image build":      {document: golden.Reports{}, modes: []mode{{flags: "--dry-run", document: golden.Plans{}}}},
		"vm image list":       {document: golden.List{}, columns: golden.Columns, oneTable: true, wide: true},
		"vm image remove":     {document: golden.Removed{}},
		"vm image bake":       {document: bake.Report{}},
		"image check":         {document: imagecheck.Report{}, columns: imagecheck.Columns, oneTable: true, wide: true},
		"image list":          {document: imagecheck.Report{}, columns: imagecheck.Columns, oneTable: true, wide: true},
		"image pull":          {document: imagepull.Report{}, columns: imagepull.Columns, wide: true},
		"image bake":          {document: bake.Report{}}, // its former name

		"network install": {document: podnetwork.Report{}},
		"network status":  {document: podnetwork.Status{}},
		"network services": {document: programmed.Report{}, wide: true,
			modes: []mode{{flags: "--fix", document: programmed.RepairReport{}}}},
		"network remove": {document: podnetwork.Report{}},

		"e2e": {document: verdict.Report{}, columns: verdict.Columns, oneTable: true, wide: true,
			modes: []mode{{flags: "--dry-run", document: trial.Plan{}}}},
		"e2e list":    {document: trial.Plan{}, columns: trial.Columns, oneTable: true, wide: true},
		"e2e compare": {document: verdict.Comparison{}, columns: verdict.ComparisonColumns, oneTable: true, wide: true},

		"readiness list":   {document: readiness.List{}, columns: readiness.ListColumns, oneTable: true, wide: true},
		"readiness run":    {document: readiness.Report{}, columns: readiness.Columns, oneTable: true, wide: true},
		"readiness report": {document: readiness.Report{}, columns: readiness.Columns, oneTable: true, wide: true},

		"netpol list":    {document: netpol.List{}, columns: netpol.ListColumns, oneTable: true, wide: true},
		"netpol explain": {document: netpol.Explanation{}},
		"netpol run":     {document: netpol.Report{}, wide: true},
		"scale run": {document: scale.Report{}, columns: scale.Columns, oneTable: true, wide: true,
			modes: []mode{{flags: "--dry-run", document: scale.Plan{}}}},
		"scale report":  {document: scale.Report{}, columns: scale.Columns, oneTable: true, wide: true},
		"scale compare": {document: scale.Comparison{}, columns: scale.ComparisonColumns, oneTable: true, wide: true},
		"selftest": {document: selftest.Report{}, wide: true,
			modes: []mode{{flags: "--list", document: selftest.List{}}}},
		"selftest compare": {document: selftest.Comparison{}, columns: selftest.ComparisonColumns, oneTable: true},

		"fleet publish":   {document: publish.Report{}},
		"fleet install":   {formats: []string{result.Text, result.YAML}},
		"fleet uninstall": {document: installation.Report{}},
		"fleet status":    {document: manage.Report{}},
		"fleet watch":     {document: manage.Report{}, records: true},
		"fleet pause":     {document: manage.Report{}},
		"fleet resume":    {document: manage.Report{}},
		"fleet abort":     {document: manage.Report{}},
		"fleet rollback":  {document: manage.Report{}},

		"config init":     yaml,
		"config schema":   json,
		"config convert":  yaml,
		"config validate": {document: push.Validation{}},
		"config trust":    {document: trust.Report{}},
		"config untrust":  {document: trust.Report{}},
		"config list":     {document: trust.Report{}},
		"sandbox up":      {document: sandbox.Info{}},
		"sandbox down":    {document: sandbox.Ends{}},
		"sandbox status":  {document: sandbox.List{}, columns: sandbox.Columns, oneTable: true, wide: true},
		"sandbox serve":   none,
		"sandbox shell":   none,
		"version":         {document: buildinfo.Build{}},
		"options":         none,
		"completion":      none,
		"debug diff":      {document: patchfile.Result{}},
		"debug patch":     {document: patchfile.Result{}},
	}
}

package cli

import (
	"github.com/swdt-dev/swdt/internal/deploy"
	"github.com/swdt-dev/swdt/internal/diag"
	"github.com/swdt-dev/swdt/internal/sandbox"
)

// outputs declares what each command prints, by how it is called without swdt. A
// command that is not here fails a test, since it would have no schema.
func outputs() map[string]output {
	none := output{}
	yaml, json := output{formats: []string{formatYAML}}, output{formats: []string{formatJSON}}
	steps := output{document: stepsReport{}}
	answer := output{document: answers{}}
	return map[string]output{
		"":           {document: versionInfo{}}, // --version
		"setup":      steps,
		"join":       {document: stepsReport{}, modes: []mode{{flags: "--preflight", document: preflightReport{}}}},
		"reset":      steps,
		"kubernetes": {document: deploy.Report{}, modes: []mode{{flags: "--watch", document: deploy.NodeResult{}, records: true}}},
		"rollback":   {document: deploy.Report{}},
		"status":     {document: deploy.StatusReport{}, wide: true},

		"exec":             none,
		"powershell":       none,
		"cp":               {document: copyReport{}},
		"logs":             {document: recordLine{}, records: true},
		"logs list":        {document: logList{}},
		"events":           {document: recordLine{}, records: true},
		"capture":          {document: packetRecord{}, records: true, modes: []mode{{flags: "-w FILE", document: captureReport{}}}},
		"capture fetch":    {document: captureReport{}},
		"capture counters": answer,
		"capture vfp":      answer,
		"ps":               {document: psList{}, modes: []mode{{flags: "--watch", document: psNode{}, records: true}}},

		"hns networks":      {document: hnsReport[hnsNetworksOf]{}},
		"hns endpoints":     {document: hnsReport[hnsEndpointsOf]{}},
		"hns loadbalancers": {document: hnsReport[hnsLoadBalancersOf]{}},
		"hns namespaces":    {document: hnsReport[hnsNamespacesOf]{}},
		"hns policies":      {document: hnsReport[hnsPoliciesOf]{}},
		"hns graph":         {formats: []string{graphSVG, graphDOT}},
		"hcs list":          {document: hcsReport{}, wide: true},
		"hcs read":          none,
		"hcs exec":          none,
		"hcs kill":          {document: killReport{}},

		"cri proxy":      {document: endpoints{}},
		"cri env":        {document: criEnvironment{}},
		"cri version":    answer,
		"cri status":     answer,
		"cri pods":       answer,
		"cri containers": answer,
		"cri images":     answer,
		"cri stats":      answer,
		"stats watch":    {document: statsRow{}, records: true, formats: []string{formatCSV}},
		"stats compare":  {document: comparison{}},
		"stats report":   {document: writtenFile{}},
		"stats serve":    {formats: []string{formatText}},
		"trace on":       steps,
		"trace off":      steps,
		"trace status":   {document: traceReport{}},
		"doctor":         {document: doctorReport{}, wide: true, modes: []mode{{flags: "--list-rules", document: ruleList{}}}},
		"diag":           {document: diagReport{}},
		"diag show": {document: diag.Manifest{}, modes: []mode{
			{flags: "BUNDLE NODE", document: diagNode{}}, {flags: "BUNDLE NODE TABLE", document: diagTable{}},
		}},

		"config init":     yaml,
		"config schema":   json,
		"config convert":  yaml,
		"config validate": {document: validated{}},
		"sandbox up":      {document: sandbox.Info{}},
		"sandbox down":    {document: sandboxEnds{}},
		"sandbox status":  {document: sandboxList{}},
		"sandbox serve":   none,
		"sandbox shell":   none,
		"sandbox sftp":    none,
		"version":         {document: versionInfo{}},
		"options":         none,
		"completion":      none,
		"debug diff":      {document: deltaResult{}},
		"debug patch":     {document: deltaResult{}},
	}
}

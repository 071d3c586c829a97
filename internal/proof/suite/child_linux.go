package suite

import "syscall"

// endWithParent makes Linux send SIGTERM to the process when swdt ends, for whatever reason. Ginkgo then
// cleans up after the current spec.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGTERM }

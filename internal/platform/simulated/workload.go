package simulated

import "github.com/swdt-dev/swdt/internal/platform/imitation/criserver"

// shimPath is the program that containerd starts for each pod.
const shimPath = `C:\Program Files\containerd\bin\containerd-shim-runhcs-v1.exe`

// workload returns the runtime's pods, each with its processes as on Windows. It creates the pods
// when the runtime is first started after a boot; the pods stay when the runtime is restarted.
func (m *Machine) workload(runtime *process) criserver.Workload {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.boot == nil {
		return criserver.Workload{}
	}
	if m.boot.pods == nil {
		pods := criserver.Example(now(), m.options.Pods)
		for i := range pods.Pods {
			m.startPod(&pods.Pods[i], runtime)
		}
		m.boot.pods = &pods
	}
	return *m.boot.pods
}

// startPod gives a pod its processes. A container with process isolation has
// its own session, and Windows, not the shim, starts its first processes.
func (m *Machine) startPod(pod *criserver.Pod, runtime *process) {
	shim, id := m.addProcess(ProcessSpec{
		Image: shimPath, ParentPID: runtime.pid,
		CommandLine: `"` + shimPath + `" -namespace k8s.io -address ` + ContainerdPipe + ` -id ` + pod.ID + ` serve`,
	}), pod.ID
	m.spawn(func() { m.serveShim(shim, id) })
	session := m.newSession()
	m.addProcess(ProcessSpec{Image: systemFolder + `\CExecSvc.exe`, Session: session, Memory: 6 << 20})
	pod.PID = m.addProcess(ProcessSpec{Image: `C:\pauseloop.exe`, Session: session, Memory: 2 << 20}).pid
	for i := range pod.Containers {
		c := &pod.Containers[i]
		session = m.newSession()
		m.addProcess(ProcessSpec{Image: systemFolder + `\CExecSvc.exe`, Session: session, Memory: 6 << 20})
		c.PID = m.addProcess(ProcessSpec{Image: `C:\` + c.Name + `.exe`, Session: session, Cores: c.Cores,
			Memory: c.Memory}).pid
	}
}

// newSession returns an unused session.
func (m *Machine) newSession() uint32 {
	highest := uint32(0)
	for _, p := range m.processes {
		highest = max(highest, p.session)
	}
	return highest + 1
}

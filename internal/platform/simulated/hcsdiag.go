package simulated

import (
	"context"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/platform/imitation/criserver"
)

// hcsdiagMain imitates Windows' tool for compute systems, with the commands list, read ID FILE and
// exec ID CMD…. Microsoft has no page about its output, so its forms are a guess: docs/guesses.md.
func hcsdiagMain(_ context.Context, p *Process) int {
	if len(p.Args) == 1 && p.Args[0] == "list" {
		return hcsdiagList(p)
	}
	if len(p.Args) < 3 {
		fmt.Fprint(p.Stdout, "hcsdiag <command> [options...]\r\n\r\nCommands: list, exec, read, console, kill\r\n")
		return 1
	}
	pod, c, ok := p.p.m.containerIn(p.Args[1])
	if !ok {
		fmt.Fprintf(p.Stderr, "Unable to open container %s: A virtual machine or container with the specified "+
			"identifier does not exist.\r\n", p.Args[1])
		return 1
	}
	switch p.Args[0] {
	case "read":
		text, ok := c.File(pod, p.Args[2])
		if !ok {
			fmt.Fprint(p.Stderr, "The system cannot find the file specified.\r\n")
			return 1
		}
		fmt.Fprint(p.Stdout, text)
		return 0
	case "exec":
		stdout, stderr, code, known := c.Run(pod, p.Args[2:])
		if !known {
			fmt.Fprint(p.Stderr, "The system cannot find the file specified.\r\n")
			return 1
		}
		fmt.Fprint(p.Stdout, stdout)
		fmt.Fprint(p.Stderr, stderr)
		return code
	}
	return 1
}

func hcsdiagList(p *Process) int {
	systems, err := p.Platform.Compute.Systems(context.Background())
	if err != nil {
		return 1
	}
	for _, s := range systems {
		fmt.Fprintf(p.Stdout, "%s\r\n    Windows Server Container,   \tRunning\r\n\r\n", s.ID)
	}
	return 0
}

// containerIn returns the pod and container of a compute system. If the compute system is a pod
// sandbox, c is empty.
func (m *Machine) containerIn(id string) (pod criserver.Pod, c criserver.Container, ok bool) {
	m.mu.Lock()
	_, err := m.disk.find(HCSFolder+`\`+id+".json", true)
	m.mu.Unlock()
	if err != nil {
		return pod, c, false
	}
	for _, pod := range criserver.Example(time.Time{}, m.options.Pods).Pods {
		if pod.ID == id {
			return pod, criserver.Container{}, true
		}
		for _, c := range pod.Containers {
			if c.ID == id {
				return pod, c, true
			}
		}
	}
	return pod, c, true // the system was added by a test and is in no pod
}

package criserver

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ExecSync runs the few programs that Container.Run imitates.
func (s *runtimeService) ExecSync(_ context.Context, request *runtimev1.ExecSyncRequest) (
	*runtimev1.ExecSyncResponse, error) {
	for _, pod := range s.pods() {
		for _, c := range pod.Containers {
			if c.ID != request.GetContainerId() {
				continue
			}
			if s.ended(c.ID) || s.ended(pod.ID) {
				return nil, status.Errorf(codes.Unknown,
					"failed to exec in container: container is in CONTAINER_EXITED state")
			}
			stdout, stderr, code, known := c.Run(pod, request.GetCmd())
			if !known {
				return nil, status.Errorf(codes.Unknown,
					"failed to exec in container: failed to start exec: hcs::System::CreateProcess %s: "+
						"The system cannot find the file specified.: unknown", c.ID)
			}
			return &runtimev1.ExecSyncResponse{Stdout: []byte(stdout), Stderr: []byte(stderr), ExitCode: int32(code)},
				nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "failed to exec in container: failed to find container %q in store: not found",
		request.GetContainerId())
}

// hostsPath is the path of the only file of a container.
const hostsPath = `C:\Windows\System32\drivers\etc\hosts`

// Run runs the few programs that a container has: hostname, ipconfig and cmd. cmd supports two
// commands: `exit N`, and `type` with the path of the hosts file. The result `known` is false for
// any other program.
func (c Container) Run(pod Pod, args []string) (stdout, stderr string, code int, known bool) {
	if len(args) == 0 {
		return "", "", 0, false
	}
	switch strings.TrimSuffix(strings.ToLower(args[0]), ".exe") {
	case "hostname":
		return pod.Name + "\r\n", "", 0, true
	case "ipconfig":
		return fmt.Sprintf("\r\nWindows IP Configuration\r\n\r\n\r\nEthernet adapter vEthernet (%s_Calico):\r\n\r\n"+
			"   IPv4 Address. . . . . . . . . . . : %s\r\n", pod.ID, pod.IP), "", 0, true
	case "cmd":
		return c.shell(pod, args[1:])
	}
	return "", "", 0, false
}

func (c Container) shell(pod Pod, args []string) (stdout, stderr string, code int, known bool) {
	words := strings.Fields(strings.Join(args, " "))
	for len(words) > 0 && strings.HasPrefix(words[0], "/") {
		words = words[1:]
	}
	switch {
	case len(words) == 2 && words[0] == "exit":
		_, _ = fmt.Sscan(words[1], &code) // cmd, too, uses 0 for a word that is not a number
		return "", "", code, true
	case len(words) == 2 && words[0] == "type":
		text, ok := c.File(pod, words[1])
		if !ok {
			return "", "The system cannot find the file specified.\r\n", 1, true
		}
		return text, "", 0, true
	}
	return "", "'" + strings.Join(words, " ") + "' is not recognized as an internal or external command.\r\n", 1, true
}

// File returns a file of the container.
func (c Container) File(pod Pod, path string) (string, bool) {
	if !strings.EqualFold(path, hostsPath) {
		return "", false
	}
	return fmt.Sprintf("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n%s\t%s\n", pod.IP, pod.Name), true
}

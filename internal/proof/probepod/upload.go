package probepod

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/smoke"
)

const (
	windows = "windows"
	// folder is where the probe is in a pod, and volume the volume that is mounted there.
	folder, volume = "/swdt", "probe"
	// uploadLimit bounds the copy of the probe into a pod.
	uploadLimit = 2 * time.Minute
	// maxStderr bounds the errors of a command in a pod, in bytes.
	maxStderr = 4 << 10
)

// Execs runs commands in containers, through the API server.
type Execs interface {
	Stream(ctx context.Context, pod cluster.Pod, container string, command []string, s cluster.ExecStreams) (int, error)
}

// Mount gives the pod's first container an empty folder for the probe.
func Mount(pod *corev1.Pod, at Place) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume,
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	container := &pod.Spec.Containers[0]
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: at.folder()})
}

// Place says where a pod has the probe.
type Place int

// The places. A HostProcess container has its volumes below its root on each Windows, and at their own paths only if
// Windows has the bind filter; see hcsshim, internal/jobcontainers/mounts.go.
const (
	OnLinux Place = iota
	OnWindows
	InHostProcess
)

// PlaceOf returns the place in a pod for a node with an operating system. host reports whether the pod uses the network
// of the node.
func PlaceOf(system string, host bool) Place {
	switch {
	case system != windows:
		return OnLinux
	case host:
		return InHostProcess
	}
	return OnWindows
}

// root is the root of a HostProcess container. The runtime replaces it in each command.
const root = "%CONTAINER_SANDBOX_MOUNT_POINT%"

// folder returns the path at which the pod mounts the volume.
func (at Place) folder() string {
	if at == OnLinux {
		return folder
	}
	return `C:\swdt`
}

// program returns the path of the probe, as a command has it.
func (at Place) program() string {
	switch at {
	case OnWindows:
		return `C:\swdt\swdt-probe.exe`
	case InHostProcess:
		return root + `\swdt\swdt-probe.exe`
	}
	return folder + "/swdt-probe"
}

// url returns the path of the probe as curl has it.
func (at Place) url() string {
	switch at {
	case OnWindows:
		return "file:///C:" + folder + "/swdt-probe.exe"
	case InHostProcess:
		return "file:///" + root + folder + "/swdt-probe.exe"
	}
	return "file://" + folder + "/swdt-probe"
}

// Upload copies the probe into a pod of Mount. curl is in each image that smoke tests use; it writes its input
// into a file, on both systems and without a shell.
func Upload(ctx context.Context, e Execs, pod cluster.Pod, at Place, program []byte) error {
	uploading, cancel := context.WithTimeout(ctx, uploadLimit)
	defer cancel()
	command := []string{"curl", "--silent", "--show-error", "--upload-file", "-", "--create-file-mode", "0700", at.url()}
	if at != OnLinux {
		command = []string{"curl.exe", "--silent", "--show-error", "--upload-file", "-", at.url()}
	}
	stderr := &cluster.Head{Limit: maxStderr}
	code, err := e.Stream(uploading, pod, smoke.Container, command,
		cluster.ExecStreams{In: bytes.NewReader(program), Out: io.Discard, Err: stderr})
	printed := Shortened(stderr.String())
	switch {
	case err == nil && code != 0:
		err = fmt.Errorf("%s ended with exit code %d: %s; %s", command[0], code, printed, at.refusal(code))
	case err != nil && printed != "": // a runtime may not notice that a command has ended before its input
		err = fmt.Errorf("%s did not end, and printed: %s: %w", command[0], printed, err)
	case uploading.Err() != nil && ctx.Err() == nil: // the API server is not to blame
		err = fmt.Errorf("%s did not end within %s: %w", command[0], uploadLimit, context.Cause(uploading))
	}
	if err != nil {
		return fmt.Errorf("copy the probe into pod %s: %w", pod, err)
	}
	return nil
}

// cannotWrite is curl's exit code if it cannot write a file (CURLE_WRITE_ERROR).
const cannotWrite = 23

// refusal returns the remedy for a curl that has failed.
func (at Place) refusal(code int) string {
	if code == cannotWrite && at != OnLinux {
		return `the pod's user cannot write to an emptyDir: its access list is that of C:\var\lib\kubelet\pods on the node, ` +
			"which must let Users add files in subfolders"
	}
	return "the image must have it"
}

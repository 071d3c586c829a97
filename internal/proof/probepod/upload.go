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

// Mount gives the pod's first container an empty folder for the probe. system is that of its node.
func Mount(pod *corev1.Pod, system string) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume,
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	container := &pod.Spec.Containers[0]
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: folderOf(system)})
}

func folderOf(system string) string {
	if system == windows {
		return `C:\swdt`
	}
	return folder
}

func programOf(system string) string {
	if system == windows {
		return "swdt-probe.exe"
	}
	return "swdt-probe"
}

// Upload copies the probe into a pod of Mount. curl is in each image that smoke tests use; it writes its input
// into a file, on both systems and without a shell.
func Upload(ctx context.Context, e Execs, pod cluster.Pod, system string, program []byte) error {
	uploading, cancel := context.WithTimeout(ctx, uploadLimit)
	defer cancel()
	command := []string{"curl", "--silent", "--show-error", "--upload-file", "-", "--create-file-mode", "0700",
		"file://" + folderOf(system) + "/" + programOf(system)}
	if system == windows {
		command = []string{"curl.exe", "--silent", "--show-error", "--upload-file", "-",
			"file:///C:" + folder + "/" + programOf(system)}
	}
	stderr := &cluster.Head{Limit: maxStderr}
	code, err := e.Stream(uploading, pod, smoke.Container, command,
		cluster.ExecStreams{In: bytes.NewReader(program), Out: io.Discard, Err: stderr})
	printed := Shortened(stderr.String())
	switch {
	case err == nil && code != 0:
		err = fmt.Errorf("%s ended with exit code %d: %s; the image must have it", command[0], code, printed)
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

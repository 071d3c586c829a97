package ability

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/smoke"
)

const (
	// smbDriver is the name of the CSI driver for SMB shares.
	smbDriver = "smb.csi.k8s.io"
	// volumeName is the name of the volume in a pod, dataFolder the folder in which it is on Windows.
	volumeName, dataFolder = "data", `C:\data`
	// ownFolder is the folder on the volume that a pod makes. The root of a volume of csi-proxy lets ContainerUser make
	// folders, and files only in those (kubernetes/kubernetes#131341, kubernetes-csi/csi-proxy#382).
	ownFolder = dataFolder + `\swdt`
	// dataFile is the file that a pod writes, and the next pod reads, as curl names it.
	dataFile = "file:///C:/data/swdt/swdt.txt"
	// maxOutput bounds the output of a command, in bytes.
	maxOutput = 4 << 10
)

// volume proves that a pod on the node writes to a volume of a CSI driver, and that the next pod reads it there.
// driver is the name of the driver, or "" for any but that of SMB.
func (t *nodeTest) volume(ctx context.Context, driver string) error {
	class, err := t.storageClass(ctx, driver)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%d", strings.ReplaceAll(class.Provisioner, ".", "-"), t.index)
	claim := newClaim(podName(name), class.Name)
	_, err = t.c.Clientset().CoreV1().PersistentVolumeClaims(t.namespace).Create(ctx, claim, metav1.CreateOptions{})
	if err := t.refused("make PersistentVolumeClaim "+claim.Name, "persistentvolumeclaims", err); err != nil {
		return tried(err)
	}
	text := rand.Text()
	writer, err := t.mounting(ctx, claim.Name, "writer")
	if err != nil {
		return err
	}
	if err := t.write(ctx, writer, text); err != nil {
		return err
	}
	if err := t.remove(ctx, writer.pod); err != nil {
		return err
	}
	reader, err := t.mounting(ctx, claim.Name, "reader")
	if err != nil {
		return err
	}
	got, err := t.Access.Exec(ctx, reader.pod, smoke.Container, maxOutput, "curl.exe", "--silent", "--show-error",
		dataFile)
	switch {
	case err != nil:
		return err
	case got.Code != 0:
		return fmt.Errorf("the next pod cannot read the file on the volume: %s", strings.TrimSpace(got.Stderr))
	case got.Stdout != text:
		return fmt.Errorf("the next pod reads other data from the volume than were written: %q", got.Stdout)
	}
	return t.remove(ctx, reader.pod)
}

// podName returns a name that is short enough for a pod and the word of its role.
func podName(name string) string {
	const longest = 50
	return strings.TrimLeft(name[max(0, len(name)-longest):], "-")
}

// storageClass returns a StorageClass of the driver, whose driver is registered on the node.
func (t *nodeTest) storageClass(ctx context.Context, driver string) (storagev1.StorageClass, error) {
	client := t.c.Clientset().StorageV1()
	classes, err := client.StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return storagev1.StorageClass{}, tried(t.c.Failure("list the StorageClasses",
			cluster.Permission{Verb: "list", Group: "storage.k8s.io", Resource: "storageclasses"}, err))
	}
	on, err := client.CSINodes().Get(ctx, t.node.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) { // kubelet makes it with the first driver
		return storagev1.StorageClass{}, tried(t.c.Failure("read the CSI drivers of node "+t.node.Name,
			cluster.Permission{Verb: "get", Group: "storage.k8s.io", Resource: "csinodes", Name: t.node.Name}, err))
	}
	var registered []string
	for _, d := range on.Spec.Drivers { // none if the object was not found
		registered = append(registered, d.Name)
	}
	var absent []string
	for _, class := range classes.Items {
		fits := class.Provisioner == driver || driver == "" && class.Provisioner != smbDriver
		kept := class.ReclaimPolicy != nil && *class.ReclaimPolicy != corev1.PersistentVolumeReclaimDelete
		switch {
		case !fits:
		case kept:
			absent = append(absent, class.Name+" keeps its volumes")
		case !slices.Contains(registered, class.Provisioner):
			absent = append(absent, class.Name+" has the driver "+class.Provisioner+", which is not registered")
		default:
			return class, nil
		}
	}
	return storagev1.StorageClass{}, noClass(t.node.Name, driver, absent)
}

// noClass returns the error for a node without a fitting StorageClass.
func noClass(node, driver string, absent []string) error {
	text := "the cluster has no StorageClass of a CSI driver"
	if driver != "" {
		text = "the cluster has no StorageClass of the CSI driver " + driver
	}
	if len(absent) > 0 {
		text = fmt.Sprintf("no StorageClass can be used on node %s: %s", node, strings.Join(absent, ", "))
	}
	return &UnavailableError{text}
}

func newClaim(name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// mounting runs a pod that mounts a claim. A pod that does not start is a failure of the storage, unless no pod
// starts on the node.
func (t *nodeTest) mounting(ctx context.Context, claim, role string) (*guest, error) {
	if _, err := t.freePod(ctx); err != nil {
		return nil, err
	}
	pod := t.newPod(claim+"-"+role, t.node, "pause")
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volumeName, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts,
		corev1.VolumeMount{Name: volumeName, MountPath: dataFolder})
	g := t.start(ctx, pod, t.node, t.r)
	return g, g.err
}

// write writes a text into the file on the volume, in a new folder.
func (t *nodeTest) write(ctx context.Context, g *guest, text string) error {
	made, err := t.Access.Exec(ctx, g.pod, smoke.Container, maxOutput, "cmd.exe", "/c", "mkdir", ownFolder)
	if err == nil && made.Code != 0 {
		err = fmt.Errorf("the pod cannot make a folder on the volume: %s", strings.TrimSpace(made.Stderr))
	}
	if err != nil {
		return err
	}
	stderr := &cluster.Head{Limit: maxOutput}
	code, err := t.Access.Stream(ctx, g.pod, smoke.Container, []string{"curl.exe", "--silent", "--show-error",
		"--upload-file", "-", dataFile},
		cluster.ExecStreams{In: strings.NewReader(text), Out: io.Discard, Err: stderr})
	if err == nil && code != 0 {
		err = fmt.Errorf("the pod cannot write a file on the volume: %s", strings.TrimSpace(stderr.String()))
	}
	return err
}

package criclient

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/format/imagefit"
	"github.com/swdt-dev/swdt/internal/ui"
)

// shortID returns as much of an ID as crictl shows.
func shortID(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(13, len(id))]
}

// displayID returns an ID as a page shows it: the whole ID on a wide page, else the short ID.
func displayID(w io.Writer, id string) string {
	if ui.IsWide(w) {
		return id
	}
	return shortID(id)
}

// table writes a table. On a wide page it adds further columns, and moreRows has their cells.
func table(w io.Writer, nothing string, columns func(wide bool) []string, rows, moreRows [][]string) error {
	if ui.IsWide(w) {
		for i := range rows {
			rows[i] = slices.Concat(rows[i], moreRows[i])
		}
	}
	return ui.TableOr(w, nothing, columns(ui.IsWide(w)), rows)
}

// PodColumns returns the columns of the table of pods. If wide is true, they are those of -o wide.
func PodColumns(wide bool) []string {
	header := []string{"POD ID", "NAMESPACE", "NAME", "STATE", "AGE", "RUNTIME"}
	if wide {
		header = append(header, "ATTEMPT", "UID")
	}
	return header
}

// ContainerColumns returns the columns of the table of containers. If wide is true, they are those of -o wide.
func ContainerColumns(wide bool) []string {
	header := []string{"CONTAINER", "NAME", "POD", "STATE", "AGE", "IMAGE"}
	if wide {
		header = append(header, "ATTEMPT", "POD ID", "IMAGE ID")
	}
	return header
}

// StatsColumns returns the columns of the table of what containers use, which has no more of them with -o wide.
func StatsColumns(bool) []string {
	return []string{"CONTAINER", "NAME", "POD", "CORES", "CPU TIME", "MEMORY", "DISK"}
}

// ImageColumns returns the columns of the table of images, without the last one, which names the node's Windows. With -o
// wide the table has no more of them.
func ImageColumns(bool) []string { return []string{"IMAGE", "ID", "SIZE", "OS BUILD"} }

func versionTable(w io.Writer, v *runtimev1.VersionResponse) error {
	return ui.Lines(w, [][]string{
		{"runtime", v.GetRuntimeName()}, {"version", v.GetRuntimeVersion()}, {"CRI", v.GetRuntimeApiVersion()},
	})
}

func statusTable(w io.Writer, s *runtimev1.StatusResponse) error {
	var rows [][]string
	for _, condition := range s.GetStatus().GetConditions() {
		rows = append(rows, []string{
			condition.GetType(), fmt.Sprint(condition.GetStatus()), condition.GetReason(),
			oneLine(condition.GetMessage()),
		})
	}
	return ui.Table(w, []string{"CONDITION", "STATUS", "REASON", "MESSAGE"}, rows)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func podTable(w io.Writer, reply *runtimev1.ListPodSandboxResponse, now time.Time) error {
	var rows, more [][]string
	for _, pod := range reply.GetItems() {
		state := strings.ToLower(strings.TrimPrefix(pod.GetState().String(), "SANDBOX_"))
		rows = append(rows, []string{
			displayID(w, pod.GetId()), pod.GetMetadata().GetNamespace(), pod.GetMetadata().GetName(), state,
			age(pod.GetCreatedAt(), now), pod.GetRuntimeHandler(),
		})
		more = append(more, []string{fmt.Sprint(pod.GetMetadata().GetAttempt()), pod.GetMetadata().GetUid()})
	}
	return table(w, "no pods", PodColumns, rows, more)
}

func containerTable(w io.Writer, reply *runtimev1.ListContainersResponse, images map[string]string,
	now time.Time) error {
	var rows, more [][]string
	for _, c := range reply.GetContainers() {
		state := strings.ToLower(strings.TrimPrefix(c.GetState().String(), "CONTAINER_"))
		rows = append(rows, []string{
			displayID(w, c.GetId()), c.GetMetadata().GetName(), podOf(c.GetLabels()), state, age(c.GetCreatedAt(), now),
			ImageOf(c, images),
		})
		more = append(more, []string{fmt.Sprint(c.GetMetadata().GetAttempt()), c.GetPodSandboxId(), c.GetImageRef()})
	}
	return table(w, "no containers", ContainerColumns, rows, more)
}

// podOf returns the pod that the kubelet's labels name.
func podOf(labels map[string]string) string {
	name, namespace := labels["io.kubernetes.pod.name"], labels["io.kubernetes.pod.namespace"]
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// statsTable leaves a missing value empty. A 0 would look like a measured value.
func statsTable(w io.Writer, reply *runtimev1.ListContainerStatsResponse) error {
	var rows [][]string
	for _, s := range reply.GetStats() {
		rows = append(rows, []string{
			displayID(w, s.GetAttributes().GetId()), s.GetAttributes().GetMetadata().GetName(),
			podOf(s.GetAttributes().GetLabels()),
			cores(s.GetCpu().GetUsageNanoCores()), seconds(s.GetCpu().GetUsageCoreNanoSeconds()),
			size(s.GetMemory().GetWorkingSetBytes()), size(s.GetWritableLayer().GetUsedBytes()),
		})
	}
	return ui.TableOr(w, "no running containers", StatsColumns(false), rows)
}

func cores(v *runtimev1.UInt64Value) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.3f", float64(v.GetValue())/1e9)
}

func seconds(v *runtimev1.UInt64Value) string {
	if v == nil {
		return ""
	}
	return ui.Seconds(time.Duration(v.GetValue()))
}

// imageRow is an image with its verdict.
type imageRow struct {
	image    *runtimev1.Image
	platform Platform
	verdict  imagefit.Verdict
}

func imageTable(w io.Writer, images []imageRow, host string) error {
	var rows [][]string
	for _, i := range images {
		rows = append(rows, []string{
			imageName(i.image), displayID(w, i.image.GetId()), ui.Size(int64(i.image.GetSize())),
			cmp.Or(i.platform.OSVersion, string(imagefit.Unknown)), string(i.verdict),
		})
	}
	return ui.TableOr(w, "no images", append(ImageColumns(false), "RUNS ON "+host), rows)
}

// imageName returns the first of an image's names.
func imageName(image *runtimev1.Image) string {
	for _, names := range [][]string{image.GetRepoTags(), image.GetRepoDigests()} {
		if len(names) > 0 {
			return names[0]
		}
	}
	return ""
}

func age(created int64, now time.Time) string {
	if created == 0 {
		return ""
	}
	return ui.Age(now.Sub(time.Unix(0, created)))
}

package winsetup

import (
	"cmp"
	"slices"
	"strconv"
)

const (
	mebibyte = 1 << 20
	// smallestSystem is the minimum size of the EFI system partition for Windows, in MiB.
	smallestSystem = 100
)

// Partition is a partition to make.
type Partition struct {
	Kind         string // EFI, MSR or Primary
	Windows      bool   // Windows is installed in this partition
	Offset, Size int64  // in bytes
}

// partitions returns the partitions that the answers create on a disk for UEFI.
func (a answers) partitions(diskBytes int64) ([]Partition, error) {
	disk := a.setup("DiskConfiguration", "Disk")
	if disk.text("DiskID") != "0" || disk.text("WillWipeDisk") != "true" {
		return nil, invalid("windowsPE", "DiskConfiguration does not wipe disk 0")
	}
	create := disk.at("CreatePartitions").all("CreatePartition")
	slices.SortFunc(create, func(a, b *element) int { return cmp.Compare(number(a, "Order"), number(b, "Order")) })
	at, end := int64(mebibyte), diskBytes-mebibyte
	var made []Partition
	for i, one := range create {
		p := Partition{Kind: one.text("Type"), Offset: at, Size: int64(number(one, "Size")) * mebibyte}
		if one.text("Extend") == "true" {
			p.Size = (end - at) / mebibyte * mebibyte
		}
		switch {
		case number(one, "Order") != i+1:
			return nil, invalid("windowsPE", "partition %d has the order %q", i+1, one.text("Order"))
		case p.Size <= 0, at+p.Size > end:
			return nil, invalid("windowsPE", "partition %d does not fit on the disk of %d bytes", i+1, diskBytes)
		case p.Kind == "EFI" && p.Size < smallestSystem*mebibyte:
			return nil, invalid("windowsPE", "the EFI partition has only %d bytes", p.Size)
		case !slices.Contains([]string{"EFI", "MSR", "Primary"}, p.Kind):
			return nil, invalid("windowsPE", "partition %d has the type %q", i+1, p.Kind)
		}
		made = append(made, p)
		at += p.Size
	}
	if len(made) == 0 || made[0].Kind != "EFI" {
		return nil, invalid("windowsPE", "Windows cannot be installed to this disk without an EFI partition")
	}
	return made, a.useOf(made, disk)
}

// useOf checks how the answers format and use the partitions, and marks the partition in which
// Windows is installed.
func (a answers) useOf(made []Partition, disk *element) error {
	formats := map[string]string{"EFI": "FAT32", "MSR": "", "Primary": "NTFS"}
	formatted := map[int]bool{}
	for _, one := range disk.at("ModifyPartitions").all("ModifyPartition") {
		id := number(one, "PartitionID")
		if id < 1 || id > len(made) {
			return invalid("windowsPE", "ModifyPartition names partition %q", one.text("PartitionID"))
		}
		if kind := made[id-1].Kind; one.text("Format") != formats[kind] {
			return invalid("windowsPE", "partition %d of type %s has the format %q", id, kind, one.text("Format"))
		}
		formatted[id] = one.text("Format") != ""
	}
	to := a.setup("ImageInstall", "OSImage", "InstallTo")
	id := number(to, "PartitionID")
	switch {
	case to.text("DiskID") != "0", id < 1, id > len(made):
		return invalid("windowsPE", "Windows is to be installed to disk %q, partition %q", to.text("DiskID"),
			to.text("PartitionID"))
	case made[id-1].Kind != "Primary", !formatted[id]:
		return invalid("windowsPE", "Windows cannot be installed to partition %d: it is not an NTFS partition", id)
	}
	made[id-1].Windows = true
	return nil
}

// number returns the number in a child: 0 if the child is missing or empty, and -1 if its text is not
// a number.
func number(e *element, name string) int {
	text := e.text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

//go:build windows

package main

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	snapshotsapi "github.com/containerd/containerd/api/services/snapshots/v1"
	"github.com/containerd/containerd/api/types"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// snapshotter implements containerd's service of snapshots.
type snapshotter struct {
	snapshotsapi.UnimplementedSnapshotsServer
	mu    sync.Mutex
	store *store
}

func openSnapshotter(root, content string) (*snapshotter, error) {
	store, err := openStore(root, content)
	if err != nil {
		return nil, err
	}
	return &snapshotter{store: store}, nil
}

func (s *snapshotter) find(name string) (*snapshot, error) {
	found := s.store.Snapshots[name]
	if found == nil {
		return nil, status.Errorf(codes.NotFound, "there is no snapshot %s", name)
	}
	return found, nil
}

// hung is a fault that tests plant: if the file exists, no snapshot is prepared.
const hung = `C:\lab\hung-prepare`

func (s *snapshotter) Prepare(_ context.Context, r *snapshotsapi.PrepareSnapshotRequest) (
	*snapshotsapi.PrepareSnapshotResponse, error) {
	if _, err := os.Stat(hung); err == nil {
		select {}
	}
	mounts, err := s.add(snapshotsapi.Kind_ACTIVE, r.Key, r.Parent, r.Labels)
	return &snapshotsapi.PrepareSnapshotResponse{Mounts: mounts}, err
}

func (s *snapshotter) View(_ context.Context, r *snapshotsapi.ViewSnapshotRequest) (
	*snapshotsapi.ViewSnapshotResponse, error) {
	mounts, err := s.add(snapshotsapi.Kind_VIEW, r.Key, r.Parent, r.Labels)
	return &snapshotsapi.ViewSnapshotResponse{Mounts: mounts}, err
}

func (s *snapshotter) add(kind snapshotsapi.Kind, name, parent string, labels map[string]string) (
	[]*types.Mount, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store.Snapshots[name] != nil {
		return nil, status.Errorf(codes.AlreadyExists, "there is a snapshot %s", name)
	}
	if parent != "" {
		if _, err := s.find(parent); err != nil {
			return nil, err
		}
	}
	s.store.Last++
	now := time.Now()
	added := &snapshot{
		Name: name, Parent: parent, Kind: kind, Labels: labels, Created: now, Updated: now,
		Folder: filepath.Join("snapshots", strconv.Itoa(s.store.Last)),
	}
	if err := os.MkdirAll(s.store.path(added), 0o755); err != nil {
		return nil, err
	}
	s.store.Snapshots[name] = added
	if err := s.store.save(); err != nil {
		return nil, err
	}
	return s.mounts(added)
}

// mounts returns the folders of a snapshot's files, in the form of Windows' layers that the shim
// reads. It returns no mount for a snapshot without a parent: containerd makes such a snapshot to
// unpack a layer into it, and the differ does not do that.
func (s *snapshotter) mounts(of *snapshot) ([]*types.Mount, error) {
	if of.Parent == "" {
		return nil, nil
	}
	parent, err := s.find(of.Parent)
	if err != nil {
		return nil, err
	}
	parents, err := json.Marshal([]string{s.store.path(parent)})
	if err != nil {
		return nil, err
	}
	mode := "rw"
	if of.Kind == snapshotsapi.Kind_VIEW {
		mode = "ro"
	}
	return []*types.Mount{{Type: "windows-layer", Source: s.store.path(of),
		Options: []string{mode, "parentLayerPaths=" + string(parents)}}}, nil
}

func (s *snapshotter) Mounts(_ context.Context, r *snapshotsapi.MountsRequest) (*snapshotsapi.MountsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of, err := s.find(r.Key)
	if err != nil {
		return nil, err
	}
	mounts, err := s.mounts(of)
	return &snapshotsapi.MountsResponse{Mounts: mounts}, err
}

func (s *snapshotter) Commit(_ context.Context, r *snapshotsapi.CommitSnapshotRequest) (*emptypb.Empty, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	active, err := s.find(r.Key)
	if err != nil {
		return nil, err
	}
	if s.store.Snapshots[r.Name] != nil {
		return nil, status.Errorf(codes.AlreadyExists, "there is a snapshot %s", r.Name)
	}
	if active.Parent != "" {
		return nil, status.Error(codes.Unimplemented, "the lab has images of one layer alone")
	}
	chain := r.Name[strings.LastIndex(r.Name, "/")+1:] // containerd prefixes its namespace
	folder, err := s.store.unpack(chain)
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	if err := os.RemoveAll(s.store.path(active)); err != nil {
		return nil, err
	}
	labels := maps.Clone(r.Labels)
	delete(s.store.Snapshots, r.Key)
	s.store.Snapshots[r.Name] = &snapshot{
		Name: r.Name, Kind: snapshotsapi.Kind_COMMITTED, Labels: labels, Created: active.Created,
		Updated: time.Now(), Folder: folder,
	}
	return &emptypb.Empty{}, s.store.save()
}

// Remove removes a snapshot. It keeps the files of a committed snapshot's layer for other
// snapshots of the same layer.
func (s *snapshotter) Remove(_ context.Context, r *snapshotsapi.RemoveSnapshotRequest) (*emptypb.Empty, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	removed, err := s.find(r.Key)
	if err != nil {
		return nil, err
	}
	for _, other := range s.store.Snapshots {
		if other.Parent == removed.Name {
			return nil, status.Errorf(codes.FailedPrecondition, "snapshot %s is the parent of %s",
				removed.Name, other.Name)
		}
	}
	if removed.Kind != snapshotsapi.Kind_COMMITTED {
		if err := os.RemoveAll(s.store.path(removed)); err != nil {
			return nil, err
		}
	}
	delete(s.store.Snapshots, r.Key)
	return &emptypb.Empty{}, s.store.save()
}

func (s *snapshotter) Stat(_ context.Context, r *snapshotsapi.StatSnapshotRequest) (
	*snapshotsapi.StatSnapshotResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(r.Key)
	if err != nil {
		return nil, err
	}
	return &snapshotsapi.StatSnapshotResponse{Info: found.info()}, nil
}

func (one *snapshot) info() *snapshotsapi.Info {
	return &snapshotsapi.Info{
		Name: one.Name, Parent: one.Parent, Kind: one.Kind, Labels: one.Labels,
		CreatedAt: timestamppb.New(one.Created), UpdatedAt: timestamppb.New(one.Updated),
	}
}

// Update changes labels, the only fields that may change.
func (s *snapshotter) Update(_ context.Context, r *snapshotsapi.UpdateSnapshotRequest) (
	*snapshotsapi.UpdateSnapshotResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(r.Info.GetName())
	if err != nil {
		return nil, err
	}
	if paths := r.UpdateMask.GetPaths(); len(paths) == 0 || slices.Contains(paths, "labels") {
		found.Labels = r.Info.GetLabels()
	} else {
		for _, path := range paths {
			name, isLabel := strings.CutPrefix(path, "labels.")
			if !isLabel {
				return nil, status.Errorf(codes.InvalidArgument, "%s of a snapshot does not change", path)
			}
			if found.Labels == nil {
				found.Labels = map[string]string{}
			}
			found.Labels[name] = r.Info.GetLabels()[name]
		}
	}
	found.Updated = time.Now()
	return &snapshotsapi.UpdateSnapshotResponse{Info: found.info()}, s.store.save()
}

// List returns all snapshots, whatever the filters. This suffices: containerd filters for a
// snapshot that exists according to an earlier answer, and checks the returned snapshots itself.
func (s *snapshotter) List(_ *snapshotsapi.ListSnapshotsRequest, to snapshotsapi.Snapshots_ListServer) error {
	s.mu.Lock()
	var all []*snapshotsapi.Info
	for _, one := range s.store.Snapshots {
		all = append(all, one.info())
	}
	s.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	return to.Send(&snapshotsapi.ListSnapshotsResponse{Info: all})
}

func (s *snapshotter) Usage(_ context.Context, r *snapshotsapi.UsageRequest) (*snapshotsapi.UsageResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(r.Key)
	if err != nil {
		return nil, err
	}
	usage := &snapshotsapi.UsageResponse{}
	err = filepath.WalkDir(s.store.path(found), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		usage.Inodes++
		if info, err := entry.Info(); err == nil && entry.Type().IsRegular() {
			usage.Size += info.Size()
		}
		return nil
	})
	return usage, err
}

func (s *snapshotter) Cleanup(context.Context, *snapshotsapi.CleanupRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil // Remove has already removed everything
}

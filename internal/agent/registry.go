package agent

import (
	"context"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
)

type registryService struct {
	agentv1.UnimplementedRegistryServer
	*session
}

func (s *registryService) Get(_ context.Context, request *agentv1.RegistryGetRequest) (*agentv1.RegistryValue, error) {
	value, err := s.platform.Registry.Get(request.GetKey(), request.GetName())
	if err != nil {
		return nil, err
	}
	return registryValue(value), nil
}

func (s *registryService) Set(_ context.Context, request *agentv1.RegistrySetRequest) (
	*agentv1.RegistrySetReply, error) {
	v := request.GetValue()
	err := s.platform.Registry.Set(request.GetKey(), platform.RegistryValue{
		Name:    v.GetName(),
		Type:    platform.RegistryType(v.GetType()),
		String:  v.GetString_(),
		Strings: v.GetStrings(),
		Integer: v.GetInteger(),
		Binary:  v.GetBinary(),
	})
	if err != nil {
		return nil, err
	}
	return &agentv1.RegistrySetReply{}, nil
}

func (s *registryService) Delete(_ context.Context, request *agentv1.RegistryDeleteRequest) (
	*agentv1.RegistryDeleteReply, error) {
	var err error
	if request.GetWholeKey() {
		err = s.platform.Registry.DeleteKey(request.GetKey())
	} else {
		err = s.platform.Registry.Delete(request.GetKey(), request.GetName())
	}
	if err != nil {
		return nil, err
	}
	return &agentv1.RegistryDeleteReply{}, nil
}

func (s *registryService) List(_ context.Context, request *agentv1.RegistryListRequest) (
	*agentv1.RegistryListReply, error) {
	values, keys, err := s.platform.Registry.List(request.GetKey())
	if err != nil {
		return nil, err
	}
	reply := &agentv1.RegistryListReply{Keys: keys}
	for _, value := range values {
		reply.Values = append(reply.Values, registryValue(value))
	}
	return reply, nil
}

func registryValue(v platform.RegistryValue) *agentv1.RegistryValue {
	return &agentv1.RegistryValue{
		Name:    v.Name,
		Type:    string(v.Type),
		String_: v.String,
		Strings: v.Strings,
		Integer: v.Integer,
		Binary:  v.Binary,
	}
}

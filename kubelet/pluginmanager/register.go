package pluginmanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// register asks a plugin who it is, hands it to the handler of its type, and tells it what
// came of that. It mirrors GenerateRegisterPluginFunc
// (operationexecutor/operation_generator.go), with its errors.
func (m *Manager) register(ctx context.Context, s *socket) error {
	made := s.made
	conn, err := Dial(ctx, m.o.Sockets, s.path)
	if err != nil {
		return fmt.Errorf("RegisterPlugin error -- dial failed at socket %s, err: %w", s.path, err)
	}
	defer func() { _ = conn.Close() }()
	plugin := registerapi.NewRegistrationClient(conn)
	info, err := within(ctx, infoTimeout, func(ctx context.Context) (*registerapi.PluginInfo, error) {
		return plugin.GetInfo(ctx, &registerapi.InfoRequest{})
	})
	if err != nil {
		return fmt.Errorf("RegisterPlugin error -- failed to get plugin info using RPC GetInfo at socket %s, err: %w", s.path, err)
	}
	h := m.handlers[info.Type]
	if h == nil {
		err := fmt.Errorf("RegisterPlugin error -- no handler registered for plugin type: %s at socket %s", info.Type, s.path)
		return fmt.Errorf("RegisterPlugin error -- failed to send error at socket %s, err: %w", s.path, notify(ctx, plugin, err))
	}
	endpoint := cmp.Or(info.Endpoint, s.path)
	if err := h.ValidatePlugin(info.Name, endpoint, info.SupportedVersions); err != nil {
		err = fmt.Errorf("RegisterPlugin error -- plugin validation failed with err: %w", err)
		return fmt.Errorf("RegisterPlugin error -- failed to send error at socket %s, err: %w", s.path, notify(ctx, plugin, err))
	}
	// It counts as taken in from here on, so that it is let go of if it goes meanwhile.
	s.registered = &registered{made: made, handler: h, name: info.Name, endpoint: endpoint}
	if err := h.RegisterPlugin(ctx, info.Name, endpoint, info.SupportedVersions); err != nil {
		s.registered = nil
		return notify(ctx, plugin, fmt.Errorf("RegisterPlugin error -- plugin registration failed with err: %w", err))
	}
	if err := notify(ctx, plugin, nil); err != nil {
		s.registered = nil
		h.DeRegisterPlugin(ctx, info.Name, endpoint)
		return fmt.Errorf("RegisterPlugin error -- failed to send registration status at socket %s, err: %w", s.path, err)
	}
	return nil
}

// notify tells a plugin that it is registered, or why it is not. The error is that
// reason, too.
func notify(ctx context.Context, plugin registerapi.RegistrationClient, refused error) error {
	status := &registerapi.RegistrationStatus{PluginRegistered: refused == nil}
	if refused != nil {
		status.Error = refused.Error()
	}
	_, err := within(ctx, notifyTimeout, func(ctx context.Context) (*registerapi.RegistrationStatusResponse, error) {
		return plugin.NotifyRegistrationStatus(ctx, status)
	})
	return errors.Join(refused, err)
}

// within is a call that has to end within a time.
func within[T any](ctx context.Context, limit time.Duration, call func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := loop.WithTimeout(ctx, limit)
	defer cancel()
	return call(ctx)
}

// Command apiserver uses a KMS v2 plugin the way a Kubernetes API server does, with the code of k8s.io/apiserver.
//
// It reads one command per line from standard input and writes one outcome per line, both as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2"
	kmstypes "k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/v2"
	"k8s.io/klog/v2"
	"k8s.io/kms/pkg/service"
)

// order is a command. Which fields it needs depends on its name.
type order struct {
	// Order is "load", "health", "store", "read", "change", "status", "encrypt" or "decrypt".
	Order string `json:"order"`
	// Path is the path of an encryption configuration.
	Path string `json:"path"`
	// Endpoint is the plugin's endpoint: "unix:///run/qsp/kms.sock".
	Endpoint string `json:"endpoint"`
	// Data is an object, as the API server or as etcd has it.
	Data []byte `json:"data"`
	// Part is the part of an etcd object to change.
	Part        string            `json:"part"`
	KeyID       string            `json:"keyId"`
	Ciphertext  []byte            `json:"ciphertext"`
	Annotations map[string][]byte `json:"annotations"`
}

// outcome is a command's outcome.
type outcome struct {
	Error string `json:"error,omitempty"`
	// Code is the gRPC code if the plugin refused.
	Code        string            `json:"code,omitempty"`
	Data        []byte            `json:"data,omitempty"`
	Stale       bool              `json:"stale"`
	KeyID       string            `json:"keyId,omitempty"`
	Ciphertext  []byte            `json:"ciphertext,omitempty"`
	Annotations map[string][]byte `json:"annotations,omitempty"`
	Healthz     string            `json:"healthz,omitempty"`
	Version     string            `json:"version,omitempty"`
}

// apiServer is the part of an API server between its storage and its plugins.
type apiServer struct {
	config   *encryptionconfig.EncryptionConfiguration
	services map[string]service.Service
}

// where is the etcd key, to which an object's ciphertext is bound.
var where = value.DefaultContext("/registry/secrets/default/test")

func main() {
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	server := &apiServer{services: map[string]service.Service{}}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		result, err := server.do(context.Background(), o)
		if err != nil {
			result = outcome{Error: err.Error(), Code: codeOf(err)}
		}
		if err := out.Encode(result); err != nil {
			os.Exit(1)
		}
	}
}

// codeOf finds the code of the gRPC error in an error chain.
func codeOf(err error) string {
	var refused interface{ GRPCStatus() *status.Status }
	if errors.As(err, &refused) {
		return refused.GRPCStatus().Code().String()
	}
	return ""
}

func (s *apiServer) do(ctx context.Context, o order) (outcome, error) {
	switch o.Order {
	case "load":
		config, err := encryptionconfig.LoadEncryptionConfig(ctx, o.Path, false, "test")
		s.config = config
		return outcome{}, err
	case "health":
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/healthz", nil)
		if err != nil {
			return outcome{}, err
		}
		for _, check := range s.config.HealthChecks {
			if err := check.Check(request); err != nil {
				return outcome{}, err
			}
		}
		return outcome{Healthz: "ok"}, nil
	case "store":
		data, err := s.secrets().TransformToStorage(ctx, o.Data, where)
		return outcome{Data: data}, err
	case "read":
		data, stale, err := s.secrets().TransformFromStorage(ctx, o.Data, where)
		return outcome{Data: data, Stale: stale}, err
	case "change":
		data, err := change(o)
		return outcome{Data: data}, err
	}
	return s.callPlugin(ctx, o)
}

func (s *apiServer) secrets() value.Transformer {
	return s.config.Transformers[schema.GroupResource{Resource: "secrets"}]
}

// change modifies part of an encrypted object: "key_id", "source", "annotation" or "annotations".
func change(o order) ([]byte, error) {
	stored := string(o.Data)
	end := strings.LastIndex(stored[:min(len(stored), 100)], "qsp:") + len("qsp:")
	var object kmstypes.EncryptedObject
	if err := proto.Unmarshal(o.Data[end:], &object); err != nil {
		return nil, err
	}
	switch o.Part {
	case "key_id":
		object.KeyID = o.KeyID
	case "source":
		object.EncryptedDEKSource[len(object.EncryptedDEKSource)-1] ^= 1
	case "annotation":
		for _, content := range object.Annotations {
			content[0] ^= 1
		}
	case "annotations":
		object.Annotations["added.example.com"] = []byte{1}
	default:
		return nil, fmt.Errorf("unknown part %q", o.Part)
	}
	changed, err := proto.Marshal(&object)
	return append([]byte(stored[:end]), changed...), err
}

func (s *apiServer) callPlugin(ctx context.Context, o order) (outcome, error) {
	plugin := s.services[o.Endpoint]
	if plugin == nil {
		created, err := kmsv2.NewGRPCService(ctx, o.Endpoint, "qsp", time.Minute)
		if err != nil {
			return outcome{}, err
		}
		plugin = created
		s.services[o.Endpoint] = created
	}
	switch o.Order {
	case "status":
		answer, err := plugin.Status(ctx)
		if err != nil {
			return outcome{}, err
		}
		return outcome{Version: answer.Version, Healthz: answer.Healthz, KeyID: answer.KeyID}, nil
	case "encrypt":
		answer, err := plugin.Encrypt(ctx, "uid", o.Data)
		if err != nil {
			return outcome{}, err
		}
		return outcome{KeyID: answer.KeyID, Ciphertext: answer.Ciphertext, Annotations: answer.Annotations}, nil
	case "decrypt":
		request := &service.DecryptRequest{KeyID: o.KeyID, Ciphertext: o.Ciphertext, Annotations: o.Annotations}
		data, err := plugin.Decrypt(ctx, "uid", request)
		return outcome{Data: data}, err
	}
	return outcome{}, fmt.Errorf("unknown order %q", o.Order)
}

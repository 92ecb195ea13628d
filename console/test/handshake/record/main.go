// Records TLS 1.3 handshakes of Go's crypto/tls with itself, and what Go says about them.
//
//	go run . > ../recordings/go.json
package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/big"
	"net"
	"os"
	"sync"
	"time"
)

type record struct {
	FromClient bool   `json:"fromClient"`
	Bytes      []byte `json:"bytes"`
}

type reading struct {
	Version       string   `json:"version"`
	CipherSuite   string   `json:"cipherSuite"`
	Group         string   `json:"group"`
	ServerName    string   `json:"serverName"`
	Alpn          string   `json:"alpn"`
	DidResume     bool     `json:"didResume"`
	HelloRetry    bool     `json:"helloRetryRequest"`
	Offered       []string `json:"offeredGroups"`
	SerialNumbers []string `json:"serialNumbers"`
	Exchanged     []string `json:"exchanged"`
}

type recording struct {
	Name    string   `json:"name"`
	Records []record `json:"records"`
	KeyLog  string   `json:"keyLog"`
	Reading reading  `json:"reading"`
}

// wire records what a connection writes, in the order of both ends' writes.
type wire struct {
	net.Conn
	fromClient bool
	mutex      *sync.Mutex
	records    *[]record
}

func (w wire) Write(data []byte) (int, error) {
	w.mutex.Lock()
	*w.records = append(*w.records, record{w.fromClient, bytes.Clone(data)})
	w.mutex.Unlock()
	return w.Conn.Write(data)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func certify(name string, key any, public any) tls.Certificate {
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: must(rand.Int(rand.Reader, big.NewInt(1<<62))),
		Subject:      pkix.Name{CommonName: name},
		DNSNames:     []string{name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	return tls.Certificate{Certificate: [][]byte{must(x509.CreateCertificate(rand.Reader, template, template, public, key))}, PrivateKey: key}
}

func listen() (client, server net.Conn) {
	// A pipe without a buffer would stall when both ends write at once.
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	defer listener.Close()
	done := make(chan net.Conn)
	go func() { done <- must(listener.Accept()) }()
	client = must(net.Dial("tcp", listener.Addr().String()))
	return client, <-done
}

func play(name string, client, server *tls.Config) recording {
	var mutex sync.Mutex
	var records []record
	var keyLog bytes.Buffer
	client, server = client.Clone(), server.Clone()
	client.KeyLogWriter = &keyLog
	var hello []string
	server.GetConfigForClient = func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		hello = nil
		for _, group := range info.SupportedCurves {
			hello = append(hello, group.String())
		}
		return nil, nil
	}
	rawClient, rawServer := listen()
	one := tls.Client(wire{rawClient, true, &mutex, &records}, client)
	other := tls.Server(wire{rawServer, false, &mutex, &records}, server)
	echoed := make(chan struct{})
	go func() {
		defer close(echoed)
		data := make([]byte, 100)
		read := must(other.Read(data))
		must(other.Write(append([]byte("echo: "), data[:read]...)))
		_, _ = io.ReadAll(other)
		_ = other.Close()
	}()
	must(one.Write([]byte("hello from Go")))
	answer := make([]byte, 100)
	read := must(one.Read(answer))
	_ = one.CloseWrite()
	<-echoed
	_, _ = io.ReadAll(one)
	_ = one.Close()
	state := one.ConnectionState()
	serials := []string{}
	for _, certificate := range append(state.PeerCertificates, other.ConnectionState().PeerCertificates...) {
		serials = append(serials, hex.EncodeToString(certificate.SerialNumber.Bytes()))
	}
	return recording{name, records, keyLog.String(), reading{
		tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite), state.CurveID.String(),
		other.ConnectionState().ServerName, state.NegotiatedProtocol, state.DidResume, state.HelloRetryRequest,
		hello, serials, []string{"hello from Go", string(answer[:read])},
	}}
}

func main() {
	ecKey := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	rsaKey := must(rsa.GenerateKey(rand.Reader, 2048))
	ec := certify("server.example", ecKey, ecKey.Public())
	withRsa := certify("server.example", rsaKey, rsaKey.Public())
	client := &tls.Config{ServerName: "server.example", InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	server := &tls.Config{Certificates: []tls.Certificate{ec}, NextProtos: []string{"h2"}}
	server.SetSessionTicketKeys([][32]byte{{1}})
	first := play("X25519MLKEM768", client, server)
	// The server accepts no share that the client sends, and asks for a certificate.
	strict := &tls.Config{Certificates: []tls.Certificate{withRsa}, CurvePreferences: []tls.CurveID{tls.CurveP384}, ClientAuth: tls.RequireAnyClientCert}
	known := client.Clone()
	known.Certificates = []tls.Certificate{certify("client.example", ecKey, ecKey.Public())}
	known.ClientSessionCache = nil
	recordings := []recording{
		first,
		play("HelloRetryRequest and client certificate", known, strict),
		play("resumption", client, server),
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(recordings); err != nil {
		panic(err)
	}
}

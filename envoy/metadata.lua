-- Refuses requests with more than 16,384 bytes of metadata, with a reason. Envoy's own limit resets the stream over
-- HTTP/2 without a reason, so it is much higher.
--
-- Counts what the client sent, as src/server/metadata.ts does: the bytes of all names and values. Subtracts the
-- metadata that Envoy added before this filter runs.

local max_bytes = 16384
local message = "the request's metadata is more than 16384 bytes"

-- google.rpc.ErrorInfo with the reason METADATA_TOO_LARGE, and google.rpc.Status with it: protobuf in base64, as the
-- protocols carry them. Tests read the reason out of both.
local error_info = "ChJNRVRBREFUQV9UT09fTEFSR0USF3F1YW50dW0tc2FmZS1wbGF5Z3JvdW5kGhEKCG1heEJ5dGVzEgUxNjM4NA"
local status_details = "CAgSL3RoZSByZXF1ZXN0J3MgbWV0YWRhdGEgaXMgbW9yZSB0aGFuIDE2Mzg0IGJ5dGVzGmwKKHR5cGUuZ29vZ2xl"
  .. "YXBpcy5jb20vZ29vZ2xlLnJwYy5FcnJvckluZm8SQAoSTUVUQURBVEFfVE9PX0xBUkdFEhdxdWFudHVtLXNhZmUt"
  .. "cGxheWdyb3VuZBoRCghtYXhCeXRlcxIFMTYzODQ"

-- Envoy appends an address to the client's x-forwarded-for. The address and the comma are Envoy's.
local function bytes_of_forwarded_for(value)
  local comma = value:find(",[^,]*$")
  return comma == nil and 0 or #"x-forwarded-for" + comma - 1
end

local function count(handle)
  local is_http1 = handle:streamInfo():protocol():sub(1, 6) == "HTTP/1"
  local bytes = 0
  for name, value in pairs(handle:headers()) do
    if name == "x-forwarded-for" then
      bytes = bytes + bytes_of_forwarded_for(value)
    elseif name == "x-request-id" and #value == 36 then
      -- Most likely Envoy's. A client that sends its own UUID may send 48 bytes more.
    elseif name == "x-forwarded-proto" or name == "x-envoy-external-address" or name == "x-envoy-internal" then
      -- Always Envoy's.
    elseif is_http1 and (name == ":method" or name == ":scheme") then
      -- Not fields of HTTP/1.1.
    elseif is_http1 and name == ":path" then
      bytes = bytes + #value
    elseif is_http1 and name == ":authority" then
      bytes = bytes + #"host" + #value
    else
      bytes = bytes + #name + #value
    end
  end
  return bytes
end

-- Detects the protocol of a request, as src/server/failures.ts does.
local function protocol_of(headers)
  local content_type = (headers:get("content-type") or ""):lower()
  if content_type:find("^application/grpc%-web") then return "grpc-web" end
  if content_type:find("^application/grpc") then return "grpc" end
  local is_rpc_path = (headers:get(":path") or ""):find("^/[%w_.]+%.[%w_]+/[%w_]+$") ~= nil
  local is_connect = headers:get("connect-protocol-version") ~= nil
    or content_type:find("^application/connect%+") ~= nil
    or content_type:find("^application/proto") ~= nil
  return (is_connect or is_rpc_path) and "connect" or "rest"
end

function envoy_on_request(handle)
  if count(handle) <= max_bytes then return end
  local protocol = protocol_of(handle:headers())
  if protocol == "grpc" then
    handle:respond({
      [":status"] = "200",
      ["content-type"] = "application/grpc",
      ["grpc-status"] = "8",
      ["grpc-message"] = message,
      ["grpc-status-details-bin"] = status_details,
    }, "")
  elseif protocol == "grpc-web" then
    local trailers = "grpc-status: 8\r\ngrpc-message: " .. message
      .. "\r\ngrpc-status-details-bin: " .. status_details .. "\r\n"
    -- A frame of trailers: the flag 0x80, and the length in four bytes, of which two are enough.
    local frame = string.char(128, 0, 0, math.floor(#trailers / 256), #trailers % 256) .. trailers
    handle:respond({ [":status"] = "200", ["content-type"] = "application/grpc-web" }, frame)
  elseif protocol == "connect" then
    handle:respond(
      { [":status"] = "431", ["content-type"] = "application/json" },
      '{"code":"resource_exhausted","message":"' .. message
        .. '","details":[{"type":"google.rpc.ErrorInfo","value":"' .. error_info .. '"}]}'
    )
  else
    handle:respond(
      { [":status"] = "431", ["content-type"] = "application/json" },
      '{"status":"error","code":"RESOURCE_EXHAUSTED","message":"' .. message
        .. '","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"METADATA_TOO_LARGE",'
        .. '"domain":"quantum-safe-playground","metadata":{"maxBytes":"16384"}}]}'
    )
  end
end

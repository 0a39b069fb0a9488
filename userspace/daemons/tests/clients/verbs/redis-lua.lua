-- SPDX-License-Identifier: GPL-2.0-only
--
-- redis-lua: see check.
local redis = require("redis")

local client
if arg[1]:sub(1, 1) == "/" then
	client = redis.connect({ scheme = "unix", path = arg[1] })
else
	client = redis.connect({ host = "127.0.0.1", port = arg[1] })
	client:auth("secret")
end

local function text(answer)
	if answer == nil then
		return "nil"
	elseif type(answer) ~= "table" then
		return tostring(answer)
	end
	local parts = {}
	for i = 1, #answer do
		parts[i] = text(answer[i])
	end
	return "[" .. table.concat(parts, "|") .. "]"
end

-- It calls methods, which are made for verbs that it does not know.
local function send(to, words)
	local name = words[1]:lower()

	if not client[name] then
		client:define_command(name)
	end
	return to[name](to, table.unpack(words, 2))
end

local function transaction(commands)
	return (client:transaction(function(to)
		for _, words in ipairs(commands) do
			send(to, words)
		end
	end))
end

local gathered
for line in io.lines() do
	local words = {}

	for word in line:gmatch("%S+") do
		words[#words + 1] = word
	end
	if line == "MULTI" then
		gathered = {}
	elseif gathered and line ~= "EXEC" then
		gathered[#gathered + 1] = words
	else
		local ok, answer

		if gathered then
			ok, answer = pcall(transaction, gathered)
		else
			ok, answer = pcall(send, client, words)
		end
		gathered = nil
		-- Its errors begin with a place in its source, and a word of its own.
		answer = ok and text(answer) or "!" .. answer:gsub("^.-:%d+: redis error: ", "")
		print((answer:gsub("\n", " ")))
		io.stdout:flush()
	end
end

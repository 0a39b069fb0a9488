# SPDX-License-Identifier: GPL-2.0-only
#
# redis-rb: see check.
require "redis"

$stdout.sync = true
where = ARGV[0]
client = where.start_with?("/") ? Redis.new(path: where) :
  Redis.new(port: where.to_i, password: "secret")

def text(answer)
  return "nil" if answer.nil?
  return "[#{answer.map { |one| text(one) }.join("|")}]" if answer.is_a?(Array)
  answer.to_s
end

gathered = nil
$stdin.each_line(chomp: true) do |line|
  if line == "MULTI"
    gathered = []
    next
  elsif gathered && line != "EXEC"
    gathered << line.split
    next
  end
  begin
    answer = text(gathered ? client.multi { |t| gathered.each { |words| t.call(words) } } :
                  client.call(line.split))
  rescue Redis::CommandError => error
    answer = "!#{error.message}"
  end
  gathered = nil
  puts answer.tr("\n", " ")
end

%% SPDX-License-Identifier: GPL-2.0-only
%%
%% eredis: see check. A transaction is a pipeline of its commands, since it has no function for
%% one.
-mode(compile).

-define(PATIENCE, 60000).

main([Where]) ->
    {ok, Client} = connect(Where),
    serve(Client, none).

connect("/" ++ _ = Path) -> eredis:start_link({local, Path}, 0);
connect(Port) -> eredis:start_link("127.0.0.1", list_to_integer(Port), 0, "secret").

serve(Client, Gathered) ->
    case io:get_line("") of
        eof -> ok;
        Line -> serve(Client, next(Client, string:lexemes(Line, " \n"), Gathered))
    end.

%% Returns the commands of the transaction that has begun, the last one first.
next(_, ["MULTI"] = Words, none) -> [Words];
next(Client, ["EXEC"] = Words, Gathered) ->
    say(lists:last(eredis:qp(Client, lists:reverse([Words | Gathered]), ?PATIENCE)));
next(Client, Words, none) -> say(eredis:q(Client, Words, ?PATIENCE));
next(_, Words, Gathered) -> [Words | Gathered].

say({ok, Answer}) -> print(text(Answer));
say({error, Error}) -> print(["!", Error]).

print(Text) ->
    io:put_chars([string:replace(Text, "\n", " ", all), "\n"]),
    none.

text(undefined) -> "nil";
text(Answers) when is_list(Answers) -> ["[", lists:join("|", lists:map(fun text/1, Answers)), "]"];
text(Answer) -> Answer.
